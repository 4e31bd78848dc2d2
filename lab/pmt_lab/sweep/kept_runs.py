"""Runs that were done elsewhere: records stand for them, and for the trials of their rates."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from pmt_lab.sweep.methods import changed_options
from pmt_lab.sweep.run_spec import RunSpec
from pmt_lab.sweep.tuning import Group, group

__all__ = ["Records", "divided", "kept_rates"]

# As pmt_lab.report.run_record.run_record makes them.
Records = Sequence[Mapping[str, Any]]


def kept_rates(
    runs: Iterable[RunSpec], trials: Iterable[RunSpec], records: Records
) -> dict[Group, Mapping[str, Any]]:
    """Return how trials elsewhere chose learning rates that runs await.

    Parameters
    ----------
    runs, trials : iterable of RunSpec
        Runs of a grid, and its trials.
    records : sequence of dict
        Runs that were done elsewhere. One tells a rate if it has the options of the run, and its
        trials the factors of the grid.

    Returns
    -------
    dict of (str, str, str) to dict
        Choices, as in a result, by method, preparation and layers.
    """
    factors: dict[Group, set[float]] = {}
    for trial in trials:
        factors.setdefault(group(trial), set()).add(trial.trial)
    awaiting = {group(run): _identity(run, with_rate=False) for run in runs if run.awaits_rate}
    found = {}
    for record in records:
        axes, tuning = record["axes"], record.get("tuning")
        place = (axes["method"], axes["preparation"], axes["layers"])
        if tuning is None or place not in awaiting:
            continue
        tried = {trial["factor"] for trial in tuning["trials"]}
        if tried == factors[place] and awaiting[place] == _recorded(record, with_rate=False):
            found[place] = tuning
    return found


def divided(
    runs: Iterable[RunSpec], records: Records, finished: Container[str]
) -> tuple[tuple[RunSpec, ...], tuple[Mapping[str, Any], ...]]:
    """Divide runs into those to do or done here, and records of those that were done elsewhere.

    Parameters
    ----------
    runs : iterable of RunSpec
        Runs of a grid.
    records : sequence of dict
        Runs of one with the same model, data, protocol and budget. One stands for the run of its
        axes, method and options.
    finished : container of str
        Hashes of the runs that are finished here, which need no record.

    Returns
    -------
    here : tuple of RunSpec
        Runs without a record, and the finished ones.
    elsewhere : tuple of dict
        The records of the others.
    """
    kept: dict[Any, Mapping[str, Any]] = {}
    for record in records:
        kept.setdefault(_place(record["axes"]), record)
    here, elsewhere = [], []
    for run in runs:
        one = kept.get(_place(run.axes))
        if (
            one is None
            or run.awaits_rate
            or run.hash in finished
            or _identity(run) != _recorded(one)
        ):
            here.append(run)
        else:
            elsewhere.append(one)
    return tuple(here), tuple(elsewhere)


def _place(axes: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(axes.items()))


def _identity(run: RunSpec, *, with_rate: bool = True) -> tuple[str, dict[str, Any]]:
    return run.base, _options(changed_options(run.base, run.options), with_rate)


def _recorded(record: Mapping[str, Any], *, with_rate: bool = True) -> tuple[str, dict[str, Any]]:
    return record["base"], _options(record["options"], with_rate)


def _options(options: Mapping[str, Any], with_rate: bool) -> dict[str, Any]:
    return {name: one for name, one in options.items() if with_rate or name != "learning_rate"}
