"""Runs of a sweep as a table, and every row of it compared with one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pmt._util.text import did_you_mean
from pmt.protocol import wilson_of_share
from pmt_lab.report.finished_runs import METRICS, FinishedRun, higher_is_better
from pmt_lab.report.intervals import accuracy_interval, difference_interval

__all__ = ["Cell", "Comparison", "Difference", "Key", "Pivot", "compare", "default_rows", "pivot"]

Key = tuple[Any, ...]

# Not every method goes with every one of these: a cell of a pair that no run has lacks none.
_OF_A_METHOD = ("method", "preparation", "layers")
_AXES = (*_OF_A_METHOD, "corruption", "severity")
_FIRST_ROWS = ("method", "corruption", "severity")


@dataclass(frozen=True)
class Cell:
    """One row of one column.

    Attributes
    ----------
    runs : tuple of FinishedRun
        One per seed, by seed; empty where none has finished.
    values : tuple of float
        Their metric.
    expected : int
        Expected number, by the seeds of the other cells.
    interval : tuple of float or None
        Interval of the mean over the test images, for accuracies.
    """

    runs: tuple[FinishedRun, ...]
    values: tuple[float, ...]
    expected: int
    interval: tuple[float, float] | None = None

    @property
    def mean(self) -> float | None:
        """Mean over the seeds; None without a run."""
        return float(np.mean(self.values)) if self.values else None

    @property
    def deviation(self) -> float | None:
        """Standard deviation over the seeds (of a sample); None with fewer than two."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None

    @property
    def missing(self) -> int:
        """Runs that should be there and are not."""
        return max(0, self.expected - len(self.values))


@dataclass(frozen=True)
class Pivot:
    """A table before it is written.

    Attributes
    ----------
    metric : str
        The metric in the cells.
    row_fields, column_fields : tuple of str
        Fields whose values are the rows and columns.
    rows, columns : tuple of tuple
        Those values, in the order of the grid.
    cells : dict
        Cell by row and column.
    seeds : tuple of int
        All seeds.
    common : dict
        Fields of the axes that are the same in all runs.
    unfinished : int
        Runs that were begun and have no result.
    failed : int
        Runs that ended with an error.
    absent_rows, absent_columns : tuple of tuple
        Values that only failed runs have, and so no row or column.
    """

    metric: str
    row_fields: tuple[str, ...]
    column_fields: tuple[str, ...]
    rows: tuple[Key, ...]
    columns: tuple[Key, ...]
    cells: dict[tuple[Key, Key], Cell]
    seeds: tuple[int, ...]
    common: dict[str, Any] = field(default_factory=dict)
    unfinished: int = 0
    failed: int = 0
    absent_rows: tuple[Key, ...] = ()
    absent_columns: tuple[Key, ...] = ()

    def best(self, column: Key) -> list[Key]:
        """Return the rows with the column's best mean; none where fewer than two have a mean."""
        means = {row: self.cells[row, column].mean for row in self.rows}
        known = [mean for mean in means.values() if mean is not None]
        if len(known) < 2:
            return []
        best = max(known) if higher_is_better(self.metric) else min(known)
        # Means of other numbers of seeds may differ in the last bit where they are equal.
        return [r for r, mean in means.items() if mean is not None and abs(mean - best) < 1e-12]

    def average(self, row: Key) -> float | None:
        """Return the mean of a row's columns; None where one of them has no run."""
        means = [self.cells[row, column].mean for column in self.columns]
        known = [mean for mean in means if mean is not None]
        return float(np.mean(known)) if len(known) == len(means) else None

    @property
    def missing(self) -> int:
        """Runs that are missing in all cells."""
        return sum(cell.missing for cell in self.cells.values())

    @property
    def expected(self) -> int:
        """Runs that all cells should have."""
        return sum(cell.expected for cell in self.cells.values())


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


def pivot(
    runs: Sequence[FinishedRun],
    *,
    rows: Sequence[str] = ("method",),
    columns: Sequence[str] = ("corruption",),
    metric: str = "test_accuracy",
    unfinished: int = 0,
    failed: Sequence[FinishedRun] = (),
) -> Pivot:
    """Arrange runs in a table.

    Parameters
    ----------
    runs : sequence of FinishedRun
        One or more.
    rows, columns : sequence of str
        Fields of the runs.
    metric : str
        One of :data:`pmt_lab.report.METRICS`.
    unfinished : int
        Number of unfinished runs, see :func:`pmt_lab.report.read_runs`.
    failed : sequence of FinishedRun
        Runs that ended with an error, without measurements: the table says how many there are, and
        which rows and columns it lacks because of them.

    Returns
    -------
    Pivot
        The table.

    Raises
    ------
    ValueError
        If the metric or a field is unknown, or a cell holds runs that differ in more than the seed.
    """
    if metric not in METRICS:
        raise ValueError(f"--metric {metric!r} is unknown{did_you_mean(metric, METRICS)}")
    known = {name for run in (*runs, *failed) for name in run.fields}
    for name in (*rows, *columns):
        if name not in known:
            near = did_you_mean(name, sorted(known))
            raise ValueError(f"{name!r} is not a field that rows or columns can have{near}")
    groups: dict[tuple[Key, Key], list[FinishedRun]] = {}
    for run in runs:
        groups.setdefault((_key(run, rows), _key(run, columns)), []).append(run)
    seeds = sorted({run.seed for run in runs if run.seed is not None})
    row_keys = _ordered(runs, rows)
    column_keys = _ordered(runs, columns)
    seeded = [run for run in runs if run.seed is not None]
    seeded_rows = {_key(run, rows) for run in seeded}
    seeded_columns = {_key(run, columns) for run in seeded}
    own = [name for name in _OF_A_METHOD if name in (*rows, *columns)]
    there = {_key(run, own) for run in runs}
    cells = {}
    for row in row_keys:
        for column in column_keys:
            place = dict(zip((*rows, *columns), (*row, *column), strict=True))
            expected = len(seeds) if row in seeded_rows and column in seeded_columns else 1
            if tuple(place[name] for name in own) not in there:
                expected = 0
            cells[row, column] = _cell(groups.get((row, column), []), metric, expected, row, column)
    return Pivot(
        metric,
        tuple(rows),
        tuple(columns),
        tuple(row_keys),
        tuple(column_keys),
        cells,
        tuple(seeds),
        _common(runs, (*rows, *columns)),
        unfinished,
        len(failed),
        _absent(failed, rows, row_keys),
        _absent(failed, columns, column_keys),
    )


def compare(table: Pivot, baseline: str) -> Comparison:
    """Compare every row with one.

    Parameters
    ----------
    table : Pivot
        The table.
    baseline : str
        A row: its values, separated by commas where a row has several fields. The first ones are
        enough if only one row has them.

    Returns
    -------
    Comparison
        Runs are paired by seed; a baseline without seeds is compared with each.

    Raises
    ------
    ValueError
        If there is no such row, or more than one.
    """
    base = _row(table, baseline)
    differences = {
        (row, column): _difference(
            table.cells[row, column], table.cells[base, column], table.metric
        )
        for row in table.rows
        if row != base
        for column in table.columns
    }
    return Comparison(table, base, differences)


def _row(table: Pivot, baseline: str) -> Key:
    by_name = {",".join(map(str, row)): row for row in table.rows}
    if baseline in by_name:
        return by_name[baseline]
    names = [name for name in by_name if name.startswith(f"{baseline},")]
    if not names:
        raise ValueError(f"--baseline {baseline!r} is not a row{did_you_mean(baseline, by_name)}")
    if len(names) > 1:
        listed = " or ".join(map(repr, names))
        raise ValueError(f"--baseline {baseline!r} is {len(names)} rows; choose {listed}")
    return by_name[names[0]]


def _key(run: FinishedRun, fields: Sequence[str]) -> Key:
    return tuple(run.fields.get(name, "") for name in fields)


def _ordered(runs: Sequence[FinishedRun], fields: Sequence[str]) -> list[Key]:
    """Return the values in the order of the grid, as far as it says one."""
    places: dict[Key, tuple[Any, ...]] = {}
    for run in runs:
        order = run.result.get("order", {})
        key = _key(run, fields)
        place = tuple(
            (order.get(name, 0), *_sortable(value)) for name, value in zip(fields, key, strict=True)
        )
        places[key] = min(places.get(key, place), place)
    return sorted(places, key=lambda key: places[key])


def _absent(
    failed: Sequence[FinishedRun], fields: Sequence[str], there: Sequence[Key]
) -> tuple[Key, ...]:
    return tuple(key for key in _ordered(failed, fields) if key not in there)


def _sortable(value: Any) -> tuple[float, str]:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return (float(value), "") if number else (0.0, str(value))


def _cell(runs: list[FinishedRun], metric: str, expected: int, row: Key, column: Key) -> Cell:
    _check_alike(runs, row, column)
    found = sorted(runs, key=lambda run: -1 if run.seed is None else run.seed)
    measured = [(run, value) for run in found if (value := run.value(metric)) is not None]
    kept = tuple(run for run, _ in measured)
    return Cell(
        kept,
        tuple(value for _, value in measured),
        expected if measured or not runs else 0,
        _interval(kept, metric),
    )


def _interval(runs: Sequence[FinishedRun], metric: str) -> tuple[float, float] | None:
    """Return Wilson's interval; of runs that do not say which images are right that of one run."""
    if not runs or not runs[0].images(metric):
        return None
    rights = [right for run in runs if (right := run.right(metric)) is not None]
    if len(rights) == len(runs):
        return accuracy_interval(rights)
    share = float(np.mean([run.value(metric) for run in runs]))
    return wilson_of_share(share, min(run.images(metric) for run in runs))


def default_rows(runs: Sequence[FinishedRun], columns: Sequence[str]) -> tuple[str, ...]:
    """Return the rows of a table for which none are named.

    They are the method, or where that is in the columns the corruption or severity, and each other
    axis in which runs of one cell would differ. Failed runs count too: their rows get names.
    """
    rows = [next((name for name in _FIRST_ROWS if name not in columns), "method")]
    for name in _AXES:
        if name not in (*rows, *columns):
            cells: dict[Key, Any] = {}
            places = [(_key(run, (*rows, *columns)), run.fields.get(name, "")) for run in runs]
            if any(cells.setdefault(key, value) != value for key, value in places):
                rows.append(name)
    return tuple(rows)


def _check_alike(runs: list[FinishedRun], row: Key, column: Key) -> None:
    """Refuse to average what differs in more than the seed."""
    for run in runs[1:]:
        first = runs[0].fields
        names = first.keys() | run.fields.keys()
        # These first: other options, a tuned rate among them, may differ with them.
        for name in sorted(names, key=lambda name: (name not in _OF_A_METHOD, name)):
            values = first.get(name), run.fields.get(name)
            if values[0] != values[1]:
                where = ", ".join(map(str, (*row, *column)))
                raise ValueError(
                    f"{where}: runs differ in {name} ({values[0]}, {values[1]}); choose with "
                    f"--where {name}=..., or put {name} into --rows or --columns"
                )


def _common(runs: Sequence[FinishedRun], shown: Sequence[str]) -> dict[str, Any]:
    """Return what all runs share of the axes that the table does not show; "" counts for none."""
    common = {}
    for name in ("method", "corruption", "severity", "layers", "preparation"):
        values = {value for run in runs if (value := run.fields.get(name, "")) not in ("", 0)}
        if name not in shown and len(values) == 1:
            common[name] = values.pop()
    return common


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
