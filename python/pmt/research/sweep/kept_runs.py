"""Runs that were done elsewhere: records stand for them, and for the trials of their rates."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from pmt.research.sweep.run_spec import RunSpec
from pmt.research.sweep.tuning import Group

__all__ = ["Records", "kept_rates", "without_kept"]

# As pmt.research.report.run_record.run_record makes them.
Records = Sequence[Mapping[str, Any]]


def kept_rates(records: Records) -> dict[Group, Mapping[str, Any]]:
    """Return how trials elsewhere chose the learning rate of a method, preparation and layers."""
    return {_group(one["axes"]): one["tuning"] for one in records if "tuning" in one}


def without_kept(
    runs: Iterable[RunSpec], records: Records, finished: Container[str]
) -> tuple[RunSpec, ...]:
    """Return the runs but those that were done elsewhere.

    Parameters
    ----------
    runs : iterable of RunSpec
        Runs of a grid.
    records : sequence of dict
        Runs of one with the same model, data, protocol and budget.
    finished : container of str
        Hashes of the runs that are finished here, which stay.

    Returns
    -------
    tuple of RunSpec
        The runs that no record has the axes and the options of, and the finished ones.
    """
    kept = {_place(record["axes"]): record["options"] for record in records}

    def elsewhere(run: RunSpec) -> bool:
        options = kept.get(_place(run.axes))
        return options is not None and _same_options(run, options)

    return tuple(
        run for run in runs if run.awaits_rate or run.hash in finished or not elsewhere(run)
    )


def _place(axes: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(axes.items()))


def _group(axes: Mapping[str, Any]) -> Group:
    return axes["method"], axes["preparation"], axes["layers"]


def _same_options(run: RunSpec, options: Mapping[str, Any]) -> bool:
    """Compare the options of a record, which leaves out a method's defaults."""
    return all(run.options.get(name) == value for name, value in options.items())
