"""Every row against one of them: differences paired over seeds and test images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pmt.research.report.finished_runs import FinishedRun, higher_is_better
from pmt.research.report.intervals import difference_interval
from pmt.research.report.pivot import Cell, Key, Pivot
from pmt.research.sweep.problems import did_you_mean

__all__ = ["Comparison", "Difference", "compare"]


@dataclass(frozen=True)
class Difference:
    """Mean difference to the baseline over ``pairs`` seeds, and its 95 % interval if it has one."""

    mean: float
    interval: tuple[float, float] | None
    pairs: int

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.interval is not None and (self.interval[0] > 0 or self.interval[1] < 0)


@dataclass(frozen=True)
class Comparison:
    """Differences of every other row to ``baseline``, by row and column; None without a pair."""

    pivot: Pivot
    baseline: Key
    differences: dict[tuple[Key, Key], Difference | None]

    def wins(self, row: Key) -> tuple[int, int, int]:
        """Return in how many columns a row is better, clearly better, and compared at all."""
        sign = 1 if higher_is_better(self.pivot.metric) else -1
        known = [d for c in self.pivot.columns if (d := self.differences[row, c]) is not None]
        better = [d for d in known if sign * d.mean > 0]
        return len(better), sum(d.clear for d in better), len(known)


def compare(table: Pivot, baseline: str) -> Comparison:
    """Compare every row with one.

    Parameters
    ----------
    table : Pivot
        The table.
    baseline : str
        A row: its values, separated by commas where a row has several fields.

    Returns
    -------
    Comparison
        Runs are paired by seed; a baseline without seeds stands against each.

    Raises
    ------
    ValueError
        If there is no such row.
    """
    by_name = {",".join(map(str, row)): row for row in table.rows}
    if baseline not in by_name:
        raise ValueError(f"--baseline {baseline!r} is no row{did_you_mean(baseline, by_name)}")
    base = by_name[baseline]
    differences = {
        (row, column): _difference(
            table.cells[row, column], table.cells[base, column], table.metric
        )
        for row in table.rows
        if row != base
        for column in table.columns
    }
    return Comparison(table, base, differences)


def _difference(cell: Cell, base: Cell, metric: str) -> Difference | None:
    pairs = _pairs(cell.runs, base.runs)
    if not pairs:
        return None
    values = [(a.value(metric) or 0.0) - (b.value(metric) or 0.0) for a, b in pairs]
    rights = [(a.right(metric), b.right(metric)) for a, b in pairs]
    both = [(a, b) for a, b in rights if a is not None and b is not None]
    interval = difference_interval(values, both if len(both) == len(pairs) else None)
    return Difference(float(np.mean(values)), interval, len(pairs))


def _pairs(
    runs: Sequence[FinishedRun], base: Sequence[FinishedRun]
) -> list[tuple[FinishedRun, FinishedRun]]:
    by_seed = {run.seed: run for run in base}
    if None in by_seed:
        return [(run, by_seed[None]) for run in runs]
    if any(run.seed is None for run in runs):
        return [(runs[0], run) for run in base] if runs else []
    return [(run, by_seed[run.seed]) for run in runs if run.seed in by_seed]
