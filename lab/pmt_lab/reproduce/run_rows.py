"""Rows of tables from the runs of a study: mean over seeds, interval, what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pmt._util.progress import duration
from pmt.protocol import wilson_of_share
from pmt_lab.report import FinishedRun
from pmt_lab.report.intervals import accuracy_interval
from pmt_lab.report.run_record import finished_run
from pmt_lab.reproduce.study import ACCURACY, Row, beside, compared, not_run
from pmt_lab.reproduce.study_grids import SMALL_MODEL

__all__ = ["Found", "accuracy_row", "find"]

Data = Mapping[str, Any]


@dataclass(frozen=True)
class Found:
    """Runs of a study with the same axes: the finished ones, and the axes of those missing."""

    runs: tuple[Data, ...]
    missing: tuple[Data, ...]
    small: bool

    @property
    def state(self) -> str:
        """Which runs are missing and what they take; empty where none is."""
        if not self.missing:
            absent = "left out at small scale" if self.small else "no run of it"
            return "" if self.runs else absent
        errors = dict.fromkeys(run["error"] for run in self.missing if "error" in run)
        return "; ".join([self._left(), *(f"failed: {error}" for error in errors)])

    @property
    def rate(self) -> str:
        """The learning rate that trials chose; empty where none did."""
        tuning = self.runs[0].get("tuning") if self.runs else None
        if tuning is None:
            return ""
        edge = ", at the edge of those tried" if tuning["at_edge"] else ""
        return f"rate {tuning['learning_rate']:g}{edge}"

    @property
    def untrained(self) -> str:
        """How many runs were reverted to the original model; empty where none was."""
        trained = [run for run in self.runs if run["steps"]]
        back = sum(run.get("chosen_state") == "start" for run in trained)
        if not back:
            return ""
        if len(trained) > 1:
            return f"{back} of {len(trained)} runs were reverted to the original model"
        return "reverted to the original model: no epoch is clearly better on held-out images"

    def _left(self) -> str:
        count = len(self.missing)
        took = duration(sum(run["seconds"] for run in self.missing) / count)
        if self.runs:
            return f"{count} of {count + len(self.runs)} runs missing, {took} each on a thread"
        return f"{count} runs of {took} on a thread" if count > 1 else f"{took} on a thread"

    def accuracy(self) -> tuple[float, tuple[float, float]]:
        """Return the mean accuracy in % and its 95 % interval over the test images.

        The same image under several seeds and corruptions counts once, as in reports.
        """
        runs = [finished_run(record) for record in self.runs]
        mean = float(np.mean([run.value("test_accuracy") for run in runs]))
        low, high = _interval(runs, mean)
        return 100 * mean, (100 * low, 100 * high)

    def loss(self) -> float | None:
        """Return the mean loss on the held-out images; None where one is not finite."""
        losses = [record["after"]["held_out"]["loss"] for record in self.runs]
        return None if None in losses else float(np.mean(losses))


def find(data: Data, grids: str | Iterable[str], **axes: Any) -> Found:
    """Return the runs of some grids whose axes have these values, or one of several in a tuple."""
    names = [grids] if isinstance(grids, str) else list(grids)
    known = [data["grids"][name] for name in names if name in data.get("grids", {})]

    def fits(place: Data) -> bool:
        return all(
            place.get(name) in value if isinstance(value, tuple) else place.get(name) == value
            for name, value in axes.items()
        )

    return Found(
        tuple(run for grid in known for run in grid["runs"] if fits(run["axes"])),
        tuple(run for grid in known for run in grid["missing"] if fits(run)),
        any(grid["model"] == SMALL_MODEL for grid in known),
    )


def accuracy_row(
    what: str,
    found: Found,
    theirs: float | None,
    *,
    why: str = "",
    whole: bool = False,
    rated: bool = True,
) -> Row:
    """Return the row of a test accuracy.

    Parameters
    ----------
    what : str
        What was measured.
    found : Found
        Its runs.
    theirs : float or None
        The published accuracy in %, which that of another network at small scale is not compared
        with.
    why : str
        Cause of a difference.
    whole : bool
        Whether a mean needs all runs, because its corruptions differ.
    rated : bool
        Whether the row says which learning rate trials chose.
    """
    if not found.runs or (whole and found.missing):
        said = _joined(why if whole else "", found.state)
        return not_run(what, None if found.small else theirs, ACCURACY.unit, said)
    ours, interval = found.accuracy()
    said = _joined(why, found.rate if rated else "", found.untrained, found.state)
    if theirs is None or found.small:
        return beside(what, ours, ACCURACY.unit, interval=interval, why=said)
    return compared(what, ours, theirs, ACCURACY, interval=interval, why=said)


def _joined(*reasons: str) -> str:
    return "; ".join(filter(None, reasons))


def _interval(runs: Sequence[FinishedRun], share: float) -> tuple[float, float]:
    rights = [right for run in runs if (right := run.right("test_accuracy")) is not None]
    sizes = {len(bits) for _, bits in rights}
    if len(rights) == len(runs) and len(sizes) == 1:
        return accuracy_interval([(0, bits) for _, bits in rights])
    return wilson_of_share(share, min(run.images("test_accuracy") for run in runs))
