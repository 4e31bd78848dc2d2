"""A measure over multiply-accumulates, over the seeds of a method."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import RunResult
from pmt_lab.report.intervals import student_t
from pmt_lab.report.runs import FinishedRun

Array = npt.NDArray[np.float64]
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Curve:
    """Losses in nats, or accuracies 0..1, of one or more seeds.

    ``values``, of shape (seeds, points), stand over ``gmacs``, billions of multiply-accumulates in
    ascending order; ``before`` is the value at 0 MACs, if known.
    """

    gmacs: Array
    values: Array
    before: float | None = None

    @property
    def mean(self) -> Array:
        """Mean over the seeds, shape (points,)."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def low(self) -> Array:
        """Least of the seeds, shape (points,)."""
        return np.asarray(self.values.min(axis=0))

    @property
    def high(self) -> Array:
        """Largest of the seeds, shape (points,)."""
        return np.asarray(self.values.max(axis=0))

    def interval(self) -> tuple[Array, Array] | None:
        """Return the ends of the mean's 95 % interval (Student's t); None with one seed."""
        seeds = len(self.values)
        if seeds < 2:
            return None
        half = student_t(seeds - 1) * self.values.std(axis=0, ddof=1) / np.sqrt(seeds)
        return self.mean - half, self.mean + half


def mean_curve(runs: Sequence[FinishedRun]) -> Curve | None:
    """Return the held-out losses of a cell's runs as a curve; None where none was trained.

    Runs of other lengths are cut to the MACs that all have reached, and joined by straight lines in
    between where their epochs end at different ones.
    """
    return _joined([run.curve() for run in runs])


def results_curve(results: Sequence[RunResult], key: str = "held_out_loss") -> Curve | None:
    """Return the curve of runs that differ in the seed alone; None where none has the figure.

    ``key`` is an entry of their records, such as ``"held_out_loss"`` or ``"valid_accuracy"``.
    """
    states: list[list[Mapping[str, Any]]] = [[*r.phases, *r.epochs] for r in results]
    return _joined([[(s.get("macs", 0), s[key]) for s in run if key in s] for run in states])


def _joined(runs: Sequence[Points]) -> Curve | None:
    curves = [points for points in runs if any(macs > 0 for macs, _ in points)]
    if not curves:
        return None
    before = [points[0][1] for points in curves if points[0][0] == 0]
    trained = [[point for point in points if point[0] > 0] for points in curves]
    end = min(points[-1][0] for points in trained)
    macs = sorted({x for points in trained for x, _ in points if x <= end})
    values = [np.interp(macs, *np.array(points, np.float64).T) for points in trained]
    gmacs = np.array(macs, np.float64) / 1e9
    return Curve(gmacs, np.array(values), float(np.mean(before)) if before else None)
