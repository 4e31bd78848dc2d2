"""Runs of a sweep as a pivot table with intervals, and its rows compared with one of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from pmt.protocol import wilson_of_share
from pmt_lab.files import did_you_mean
from pmt_lab.report.intervals import accuracy_interval, difference_interval
from pmt_lab.report.runs import METRICS, FinishedRun, shown

# Not every method goes with every one of these: a cell of a pair that no run has lacks none.
_OF_A_METHOD = ("method", "preparation", "layers")
_AXES = (*_OF_A_METHOD, "corruption", "severity")
_FIRST_ROWS = ("method", "corruption", "severity")
_SAME = 1e-12  # means of other numbers of seeds may differ in the last bit where they are equal


def higher_is_better(metric: str) -> bool:
    """Whether a larger value of the metric is the better one."""
    return metric.endswith("accuracy")


def name(run: FinishedRun, fields: Sequence[str]) -> str:
    """Return the name of a run's row or column; a field that the run lacks is ``-``."""
    return ", ".join(shown(run, field) or "-" for field in fields)


def default_rows(runs: Sequence[FinishedRun], columns: Sequence[str]) -> tuple[str, ...]:
    """Return the rows of a table for which none are named.

    They are the method, or where that is in the columns the corruption or severity, and each other
    axis in which runs of one cell would differ.
    """
    rows = [next((one for one in _FIRST_ROWS if one not in columns), "method")]
    for axis in _AXES:
        cells = {(name(run, (*rows, *columns)), shown(run, axis)) for run in runs}
        if axis not in (*rows, *columns) and len(cells) > len({place for place, _ in cells}):
            rows.append(axis)
    return tuple(rows)


def cells_of(
    runs: Sequence[FinishedRun], rows: Sequence[str], columns: Sequence[str], metric: str
) -> pd.DataFrame:
    """Arrange runs, one or more, in a table: a line for each cell, in the order of the grid.

    By the names of its ``row`` and ``column`` it has its ``runs`` with the metric, by seed;
    ``mean``, ``std``, ``min``, ``max`` over them, the ends ``low`` and ``high`` of the mean's 95 %
    interval over the test images, for accuracies, the number of ``seeds``, and how many are
    ``missing``. A ValueError says that the metric or a field is unknown, or a cell holds runs that
    differ in more than the seed.
    """
    if metric not in METRICS:
        raise ValueError(f"--metric {metric!r} is unknown{did_you_mean(metric, METRICS)}")
    known = {field for run in runs for field in run.fields}
    for field in (*rows, *columns):
        if field not in known:
            near = did_you_mean(field, sorted(known))
            raise ValueError(f"{field!r} is not a field that rows or columns can have{near}")
    own = [field for field in _OF_A_METHOD if field in (*rows, *columns)]
    frame = pd.DataFrame(
        {
            "row": [name(run, rows) for run in runs],
            "column": [name(run, columns) for run in runs],
            "seed": [-1 if run.seed is None else run.seed for run in runs],
            "value": [run.value(metric) for run in runs],
            "run": list(runs),
        }
    ).sort_values("seed", kind="stable")
    for (row, column), group in frame.groupby(["row", "column"]):
        _check_alike(list(group["run"]), f"{row}, {column}")
    measured = frame[frame["value"].notna()]
    groups = measured.groupby(["row", "column"])
    cells = groups["value"].agg(["mean", "std", "min", "max"])
    cells["seeds"] = groups.size()
    cells["runs"] = groups["run"].agg(list)
    order = pd.MultiIndex.from_product([_ordered(runs, rows), _ordered(runs, columns)])
    cells = cells.reindex(order.set_names(["row", "column"]))
    cells["seeds"] = cells["seeds"].fillna(0).astype(int)
    cells["runs"] = [found if isinstance(found, list) else [] for found in cells["runs"]]
    ends = [_interval(found, metric) for found in cells["runs"]]
    cells[["low", "high"]] = pd.DataFrame(ends, cells.index, dtype=float)
    there = set(zip(frame["row"], frame["column"], strict=True))
    seeded = frame[frame["seed"] >= 0]
    pairs = {name(run, own) for run in runs}
    examples = {
        **dict(zip(frame["row"], frame["run"], strict=True)),
        **{(one,): run for one, run in zip(frame["column"], frame["run"], strict=True)},
    }
    expected = []
    for row, column in cells.index:
        place = [
            shown(examples[row] if field in rows else examples[column,], field) or "-"
            for field in own
        ]
        if (row, column) in there:
            wanted = cells.loc[(row, column), "seeds"] > 0
        else:
            wanted = ", ".join(place) in pairs
        both = (seeded["row"] == row).any() and (seeded["column"] == column).any()
        expected.append((seeded["seed"].nunique() if both else 1) if wanted else 0)
    cells["missing"] = np.maximum(0, np.array(expected) - cells["seeds"])
    return cells


def best(cells: pd.DataFrame, metric: str) -> pd.Series:
    """Return which cells have the best mean of their column; none where fewer than two have one."""
    columns = cells["mean"].groupby("column")
    top = columns.transform("max" if higher_is_better(metric) else "min")
    found: pd.Series = ((cells["mean"] - top).abs() < _SAME) & (columns.transform("count") > 1)
    return found


def add_differences(cells: pd.DataFrame, metric: str, baseline: str) -> str:
    """Compare every row with one: ``difference``, its 95 % interval, and ``pairs`` of seeds.

    Runs are paired by seed; a baseline without seeds is compared with each. The table gets the
    columns, of which ``difference_low`` and ``difference_high`` are the interval's ends. The
    baseline is a row: its values, separated by commas where a row has several fields; the first
    ones are enough if only one row has them. It is returned; a ValueError says that there is none,
    or more than one.
    """
    base = _row(list(cells.index.unique("row")), baseline)
    found = []
    for row, column in cells.index:
        pairs = []
        if row != base:
            pairs = _pairs(cells.loc[(row, column), "runs"], cells.loc[(base, column), "runs"])
        found.append(_difference(pairs, metric))
    titles = ["difference", "difference_low", "difference_high", "pairs"]
    cells[titles] = pd.DataFrame(found, cells.index)
    return base


def _row(rows: list[str], baseline: str) -> str:
    by_name = {row.replace(", ", ","): row for row in rows}
    given = baseline.replace(", ", ",")
    if given in by_name:
        return by_name[given]
    names = [one for one in by_name if one.startswith(f"{given},")]
    if not names:
        raise ValueError(f"--baseline {baseline!r} is not a row{did_you_mean(baseline, by_name)}")
    if len(names) > 1:
        listed = " or ".join(map(repr, names))
        raise ValueError(f"--baseline {baseline!r} is {len(names)} rows; choose {listed}")
    return by_name[names[0]]


def _ordered(runs: Sequence[FinishedRun], fields: Sequence[str]) -> list[str]:
    """Return the names of rows or columns in the order of the grid, as far as it says one."""
    places: dict[str, tuple[Any, ...]] = {}
    for run in runs:
        order = run.result.get("order", {})
        values = [run.fields.get(field, "") for field in fields]
        place = tuple(
            (order.get(field, 0), *_sortable(one))
            for field, one in zip(fields, values, strict=True)
        )
        key = name(run, fields)
        places[key] = min(places.get(key, place), place)
    return sorted(places, key=lambda key: places[key])


def _sortable(value: Any) -> tuple[float, str]:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return (float(value), "") if number else (0.0, str(value))


def _check_alike(runs: list[FinishedRun], where: str) -> None:
    """Refuse to average runs that differ in more than the seed."""
    first = runs[0].fields
    for fields in (run.fields for run in runs[1:]):
        # These first: other options, a tuned rate among them, may differ with them.
        for field in sorted({*first, *fields}, key=lambda one: (one not in _OF_A_METHOD, one)):
            if first.get(field) != fields.get(field):
                raise ValueError(
                    f"{where}: runs differ in {field} ({first.get(field)}, {fields.get(field)}); "
                    f"choose with --where {field}=..., or put {field} into --rows or --columns"
                )


def _interval(runs: Sequence[FinishedRun], metric: str) -> tuple[float | None, float | None]:
    """Return Wilson's interval; of runs that do not say which images are right that of one run."""
    if not runs or not runs[0].images(metric):
        return None, None
    rights = [right for run in runs if (right := run.right(metric)) is not None]
    if len(rights) == len(runs):
        return accuracy_interval(rights)
    share = float(np.mean([run.value(metric) for run in runs]))
    return wilson_of_share(share, min(run.images(metric) for run in runs))


def _pairs(
    runs: Sequence[FinishedRun], base: Sequence[FinishedRun]
) -> list[tuple[FinishedRun, FinishedRun]]:
    by_seed = {run.seed: run for run in base}
    if None in by_seed:
        return [(run, by_seed[None]) for run in runs]
    if any(run.seed is None for run in runs):
        return [(runs[0], run) for run in base] if runs else []
    return [(run, by_seed[run.seed]) for run in runs if run.seed in by_seed]


def _difference(
    pairs: Sequence[tuple[FinishedRun, FinishedRun]], metric: str
) -> tuple[float | None, float | None, float | None, int]:
    if not pairs:
        return None, None, None, 0
    values = [(a.value(metric) or 0.0) - (b.value(metric) or 0.0) for a, b in pairs]
    rights = [(a.right(metric), b.right(metric)) for a, b in pairs]
    both = [(a, b) for a, b in rights if a is not None and b is not None]
    ends = difference_interval(values, both if len(both) == len(pairs) else None)
    return float(np.mean(values)), *(ends or (None, None)), len(pairs)
