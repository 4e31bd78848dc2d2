"""A report of sweeps: means with intervals, differences to a baseline, and tuned learning rates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from pmt_lab.files import counted
from pmt_lab.report.runs import Found, chosen, gather_runs, keep_runs, shown
from pmt_lab.report.table import (
    add_differences,
    best,
    cells_of,
    default_rows,
    higher_is_better,
    name,
)

FORMATS = ("md", "tex", "csv")
_METHOD = ("method", "preparation", "layers")
_SHOWN_FAILURES = 3


@dataclass(frozen=True)
class _Text:
    """A table of text: title, cells under their heads, which of them are bold, and notes."""

    title: str
    cells: pd.DataFrame
    bold: pd.DataFrame
    notes: list[str]

    def transposed(self) -> _Text:
        return _Text(self.title, self.cells.T, self.bold.T, self.notes)

    def to_markdown(self) -> str:
        stars = self.bold.map(lambda bold: "**" if bold else "")
        cells = (stars + self.cells + stars).replace("|", r"\|", regex=False)
        lines = cells.to_markdown(disable_numparse=True, tablefmt="github")
        notes = "".join(f"- {note}\n" for note in self.notes)
        return f"**{self.title}**\n\n{lines}\n{notes and f'{chr(10)}{notes}'}"

    def to_latex(self) -> str:
        """Write it for the package booktabs; the notes are comments."""
        cells = self.cells.reset_index()
        bold = self.bold.reset_index(drop=True).reindex(columns=cells.columns, fill_value=False)
        props = bold.map(lambda bold: "textbf: --rwrap;" if bold else "")
        style = cells.style.hide(axis="index").format(_tex, escape="latex")
        style = style.format_index(escape="latex", axis=1).apply(lambda _: props, axis=None)
        notes = "".join(f"% {note}\n" for note in (self.title, *self.notes))
        sides = "l" + "r" * self.cells.shape[1]
        return notes + str(style.to_latex(hrules=True, column_format=sides))


def _tex(text: str) -> str:
    return re.sub(r"-(?=\d)", "$-$", text.replace("±", r"$\pm$"))


@dataclass(frozen=True)
class Report:
    """A table of sweeps, its comparison with the row ``baseline``, if named, and tuned rates.

    ``row_fields`` and ``column_fields`` are the fields whose values are the rows and columns.
    ``cells`` are those of :func:`pmt_lab.report.table.cells_of` and, with a baseline,
    :func:`pmt_lab.report.table.add_differences`; ``found`` are the runs of the table, the hashes of
    those that were only begun, and errors of failed ones.
    """

    metric: str
    row_fields: tuple[str, ...]
    column_fields: tuple[str, ...]
    cells: pd.DataFrame = field(repr=False)
    found: Found = field(repr=False)
    baseline: str | None = None

    @property
    def rows(self) -> list[str]:
        """Names of the rows, in the order of the grid."""
        return list(self.cells.index.unique("row"))

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in the order of the grid."""
        return list(self.cells.index.unique("column"))

    @property
    def rates(self) -> pd.DataFrame:
        """Learning rates that trials chose, and the held-out loss of each trial, by its factor.

        The columns are ``method``, ``preparation``, ``layers``, ``factor``, ``learning_rate``,
        ``at_edge`` and ``losses``, a dict; a loss that was not finite is None.
        """
        found = {}
        for run in sorted(
            self.found.runs, key=lambda run: sorted(run.result.get("order", {}).items())
        ):
            tuning = run.result.get("tuning")
            if tuning:
                losses = {one["factor"]: one["held_out_loss"] for one in tuning["trials"]}
                chosen = {one: tuning[one] for one in ("factor", "learning_rate", "at_edge")}
                line = {one: shown(run, one) for one in _METHOD} | chosen | {"losses": losses}
                found[repr(line)] = line
        return pd.DataFrame(list(found.values()))

    def keep(self, path: str | Path) -> None:
        """Write the runs without weights into a JSON file, which :func:`make_report` takes again.

        The tables from it are the same to the last digit; of curves it has 12 points.
        """
        keep_runs(self.found, path)

    def to_frame(self) -> pd.DataFrame:
        """Return the figures, a line for each cell; accuracies are 0..1."""
        keys = [*self.row_fields, *self.column_fields]
        rows, columns = (
            {name(run, fields): [shown(run, field) for field in fields] for run in self.found.runs}
            for fields in (self.row_fields, self.column_fields)
        )
        values = [[*rows[row], *columns[column]] for row, column in self.cells.index]
        fields = pd.DataFrame(values, self.cells.index, keys).assign(metric=self.metric)
        figures = self.cells.drop(columns="runs").assign(best=best(self.cells, self.metric))
        return pd.concat([fields, figures], axis=1).reset_index(drop=True)

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        frame = self.to_frame()
        frame["values"] = [[run.value(self.metric) for run in runs] for runs in self.cells["runs"]]
        return {
            "metric": self.metric,
            "cells": _records(frame),
            "missing": int(self.cells["missing"].sum()),
            "failed": self.found.failed,
            "rates": _records(self.rates),
        }

    def text(self, form: str = "md", spread: str = "std", *, transpose: bool = False) -> str:
        """Return the tables as text: Markdown, LaTeX (booktabs), or CSV with a line for each cell.

        The spread over seeds is ``"std"``, their standard deviation, or ``"range"``, the smallest
        and the largest value. In Markdown and LaTeX columns may be written as rows; the figures
        stay. CSV has no tuned rates.
        """
        if form == "csv":
            return str(self.to_frame().to_csv(index=False, float_format="%.10g"))
        tables = [self._means(spread, "row" if transpose else "column")]
        if self.baseline is not None:
            tables.append(self._differences())
        if transpose:
            tables = [table.transposed() for table in tables]
        if not self.rates.empty:
            tables.append(self._rates())
        return "\n".join(one.to_latex() if form == "tex" else one.to_markdown() for one in tables)

    def _wide(self, values: Sequence[Any], rows: Sequence[str] | None = None) -> pd.DataFrame:
        """Return a value of each cell as a table with the columns across."""
        wide = pd.Series(values, self.cells.index).unstack("column")
        wide = wide.loc[self.rows if rows is None else rows, self.columns]
        corner = ", ".join(self.row_fields), ", ".join(self.column_fields)
        return wide.rename_axis(index=corner[0], columns=corner[1])

    def _means(self, spread: str, across: str) -> _Text:
        texts = self._wide([self._mean_text(cell, spread) for cell in self.cells.itertuples()])
        bold = self._wide(best(self.cells, self.metric))
        if len(self.columns) > 1:
            averages = self._wide(self.cells["mean"]).mean(axis=1, skipna=False)
            texts["mean"] = [number(self.metric, average) for average in averages]
            bold["mean"] = False
        _, _, unit = _unit(self.metric)
        words = self.metric.replace("held_out", "held-out").replace("_", " ")
        notes = self._notes(spread)
        if bold.any(axis=None):
            notes.append(f"Bold: best of its {across}.")
        return _Text(f"{words} in {unit}", texts, bold, [*notes, *self._notes_of_missing()])

    def _mean_text(self, cell: Any, spread: str) -> str:
        if not cell.seeds:
            return "-"

        def shown(*values: float) -> str:
            return "..".join(number(self.metric, value) for value in values)

        parts = [shown(cell.mean)]
        if cell.seeds > 1:
            wide = f"[{shown(cell.min, cell.max)}]"
            parts.append(wide if spread == "range" else f"± {shown(cell.std)}")
        if not pd.isna(cell.low):
            parts.append(f"({shown(cell.low, cell.high)})")
        if cell.missing:
            parts.append(f"[{cell.seeds} of {cell.seeds + cell.missing}]")
        return " ".join(parts)

    def _differences(self) -> _Text:
        rows = [row for row in self.rows if row != self.baseline]
        found, sign = self.cells, 1 if higher_is_better(self.metric) else -1
        clear = (found["difference_low"] > 0) | (found["difference_high"] < 0)
        better = sign * found["difference"] > 0
        texts = self._wide([self._difference_text(cell) for cell in found.itertuples()], rows)
        texts["better than it in"] = [
            f"{better[row].sum()} of {found.loc[row, 'difference'].count()} "
            f"({(better & clear)[row].sum()} clearly)"
            for row in rows
        ]
        bold = self._wide(clear, rows).assign(**{"better than it in": False})
        unit = _unit(self.metric)[2].replace("%", "points")
        title = f"{self.metric.replace('_', ' ')}: difference to {self.baseline}, in {unit}"
        notes = [
            "(a..b): 95 % interval of the mean difference, paired by seed (Student's t) and, for "
            "accuracies, by test image; both uncertainties are in it. With one seed only that of "
            "the images.",
            "Bold, and clearly: the interval excludes 0.",
        ]
        return _Text(title, texts, bold, notes)

    def _difference_text(self, cell: Any) -> str:
        if pd.isna(cell.difference):
            return "-"
        ends = (cell.difference_low, cell.difference_high)
        texts = [number(self.metric, value, sign=True) for value in (cell.difference, *ends)]
        return texts[0] if pd.isna(ends[0]) else f"{texts[0]} ({texts[1]}..{texts[2]})"

    def _notes(self, spread: str) -> list[str]:
        notes, runs = [], self.found.runs
        common = {}
        for axis in ("method", "corruption", "severity", "layers", "preparation"):
            values = {shown(run, axis) for run in runs} - {"", "0"}
            if axis not in (*self.row_fields, *self.column_fields) and len(values) == 1:
                common[axis] = values.pop()
        if common:
            notes.append(f"All runs: {', '.join(f'{axis} {one}' for axis, one in common.items())}.")
        seeds = ", ".join(map(str, sorted({run.seed for run in runs if run.seed is not None})))
        if (self.cells["seeds"] > 1).any():
            std = "±: standard deviation", "[a..b]: smallest and largest value"
            notes.append(f"Mean over seeds {seeds}. {std[spread == 'range']} over them.")
        elif seeds:
            notes.append(f"Seed {seeds}.")
        if self.cells["low"].notna().any():
            notes.append(
                "(a..b): 95 % Wilson interval for the choice of test images, pooled over seeds. It "
                "does not include variation between seeds."
            )
        return notes

    def _notes_of_missing(self) -> list[str]:
        notes, found = [], self.found
        missing = self.cells["missing"].sum()
        if missing or found.unfinished:
            begun = f"; {len(found.unfinished)} begun and not finished" if found.unfinished else ""
            expected = missing + self.cells["seeds"].sum()
            notes.append(f"{missing} of {expected} runs are missing (-, or [those there]){begun}.")
        if found.failed:
            first = list(found.failed.items())[:_SHOWN_FAILURES]
            errors = "; ".join(f"{title}: {error}" for title, error in first)
            more = "; ..." if len(found.failed) > len(first) else ""
            notes.append(
                f"{counted(len(found.failed), 'run')} failed ({errors}{more}). The same `pmt-lab "
                "sweep` tries again."
            )
        return notes

    def _rates(self) -> _Text:
        rates = self.rates
        factors = sorted({factor for losses in rates["losses"] for factor in losses})
        cells = rates[list(_METHOD)].copy()
        cells["factor"] = rates["factor"].map("{:g}".format)
        cells["rate"] = rates["learning_rate"].map("{:g}".format)
        bold = pd.DataFrame(False, cells.index, cells.columns)
        for factor in factors:
            title = f"loss at {factor:g}"
            cells[title] = [_loss(losses, factor) for losses in rates["losses"]]
            bold[title] = rates["factor"] == factor
        edges = rates[rates["at_edge"]]
        notes = [
            "Each method's own rate times every factor, at the budget of the table; the least loss "
            "on the held-out images wins, of equal ones the smaller rate. Bold: the one that won.",
            *(
                f"The rate of {', '.join(one)} is at the edge of the factors tried."
                for one in edges[list(_METHOD)].itertuples(index=False)
            ),
        ]
        title = "learning rates, chosen by trials: held-out loss in nats"
        first = cells.columns[0]
        return _Text(title, cells.set_index(first), bold.set_axis(cells[first]).iloc[:, 1:], notes)


def _loss(losses: Mapping[float, float | None], factor: float) -> str:
    if factor not in losses:
        return "-"
    loss = losses[factor]
    return "not finite" if loss is None else f"{loss:.4f}"


def _unit(metric: str) -> tuple[float, int, str]:
    """Return the factor, the digits and the name of a metric's unit."""
    if metric.endswith("accuracy"):
        return 100.0, 1, "%"
    if metric.endswith("loss"):
        return 1.0, 3, "nats"
    if metric == "macs":
        return 1e-9, 0, "GMAC"
    if metric.endswith("seconds"):
        return 1.0, 0, "s"
    return 1.0, 0, "forwards of a suffix"


def number(metric: str, value: float, *, sign: bool = False) -> str:
    """Write a value of a metric in its unit; ``-`` where there is none.

    A 0 has no minus, but the end of an interval that excludes 0 keeps its side of it.
    """
    if pd.isna(value):
        return "-"
    scale, digits, _ = _unit(metric)
    text = f"{value * scale:{'+' if sign else ''},.{digits}f}"
    is_zero = not text.strip("+-0.")
    if is_zero and text[0] == "-" and not (sign and value < -1e-12):
        return text.replace("-", "+" if sign else "")
    return text


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the lines of a table as JSON, None where it has no number."""
    found: list[dict[str, Any]] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return found


def make_report(
    folders: Iterable[str | Path],
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] = ("corruption",),
    where: Mapping[str, Sequence[str]] | None = None,
    metric: str = "test_accuracy",
    baseline: str | None = None,
) -> Report:
    """Arrange the finished runs of sweeps in a table.

    Parameters
    ----------
    folders : iterable of str or pathlib.Path
        Folders of sweeps, and files that :meth:`Report.keep` wrote.
    rows : sequence of str, optional
        Fields of the rows; by default the method, and each other axis of the grid in which runs of
        one cell would differ, such as the preparation.
    columns : sequence of str
        Fields of the columns.
    where : dict of str to list of str, optional
        Only runs whose field has one of these values.
    metric : str
        Content of the cells, one of :data:`pmt_lab.report.METRICS`.
    baseline : str, optional
        Row that all others are compared with, paired by seed and image; its first values are
        enough if only one row has them.

    Returns
    -------
    Report
        The table; the same runs give the same bytes.

    Raises
    ------
    FileNotFoundError, ValueError
        If there are no runs, a field, a metric or the baseline is unknown, or runs in one cell
        differ in more than the seed.
    """
    found = gather_runs(folders)
    if where:
        found = Found(chosen(found.runs, where), [], {})
    across = tuple(columns)
    down = default_rows(found.runs, across) if rows is None else tuple(rows)
    cells = cells_of(found.runs, down, across, metric)
    base = None if baseline is None else add_differences(cells, metric, baseline)
    return Report(metric, down, across, cells, found, base)
