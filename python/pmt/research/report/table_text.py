"""A pivot as plain cells and notes, before it becomes Markdown or LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pmt._util.printable import printable
from pmt.research.report.comparison import Comparison, Difference
from pmt.research.report.figures import Figures
from pmt.research.report.pivot import Cell, Key, Pivot

__all__ = ["CellText", "TableText", "comparison_text", "pivot_text"]


@dataclass(frozen=True)
class CellText:
    """A cell: its text, and whether it is emphasised."""

    text: str
    bold: bool = False


@dataclass(frozen=True)
class TableText:
    """Title, head, rows of cells, and the notes that say what is in them."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[CellText, ...], ...]
    notes: tuple[str, ...]


def pivot_text(table: Pivot, figures: Figures) -> TableText:
    """Write the means; the best of each column is bold."""
    best = {column: table.best(column) for column in table.columns}
    averages = {row: table.average(row) for row in table.rows}
    rows = []
    for row in table.rows:
        cells = [CellText(name(row))]
        cells += [
            CellText(_cell(table.cells[row, column], figures), row in best[column])
            for column in table.columns
        ]
        if len(table.columns) > 1:
            average = averages[row]
            cells.append(CellText("-" if average is None else figures.value(average)))
        rows.append(tuple(cells))
    head = (name(table.row_fields), *(name(column) for column in table.columns))
    if len(table.columns) > 1:
        head = (*head, "mean")
    return TableText(figures.title, head, tuple(rows), _notes(table, figures))


def comparison_text(compared: Comparison, figures: Figures) -> TableText:
    """Write the differences to the baseline; those whose interval excludes 0 are bold."""
    table = compared.pivot
    base = name(compared.baseline)
    rows = []
    for row in table.rows:
        if row == compared.baseline:
            continue
        cells = [CellText(name(row))]
        for column in table.columns:
            found = compared.differences[row, column]
            cells.append(CellText(_difference(found, figures), bool(found and found.clear)))
        better, clearly, known = compared.wins(row)
        cells.append(CellText(f"{better} of {known} ({clearly} clearly)"))
        rows.append(tuple(cells))
    head = (name(table.row_fields), *(name(c) for c in table.columns), "better than it in")
    unit = "points" if figures.unit == "%" else figures.unit
    notes = (
        "(a..b): 95 % interval of the mean difference, paired by seed (Student's t) and, for "
        "accuracies, by test image; both uncertainties are in it. With one seed only that of the "
        "images.",
        "Bold, and clearly: the interval excludes 0.",
    )
    title = f"{figures.metric.replace('_', ' ')}: difference to {base}, in {unit}"
    return TableText(title, head, tuple(rows), notes)


def name(key: Key | Sequence[str]) -> str:
    """Return the name of a row, a column or their fields."""
    return printable(", ".join(str(part) for part in key))


def _cell(cell: Cell, figures: Figures) -> str:
    if cell.mean is None:
        return "-"
    parts = [figures.value(cell.mean), figures.spread_of(cell), figures.interval(cell.interval)]
    if cell.missing:
        parts.append(f"[{len(cell.values)} of {cell.expected}]")
    return " ".join(part for part in parts if part)


def _difference(found: Difference | None, figures: Figures) -> str:
    if found is None:
        return "-"
    mean = figures.value(found.mean, sign=True)
    return f"{mean} {figures.interval(found.interval, sign=True)}".rstrip()


def _notes(table: Pivot, figures: Figures) -> tuple[str, ...]:
    notes = []
    if table.common:
        same = ", ".join(f"{key} {value}" for key, value in table.common.items())
        notes.append(f"All runs: {printable(same)}.")
    seeds = ", ".join(map(str, table.seeds))
    if any(len(cell.values) > 1 for cell in table.cells.values()):
        what = "±: standard deviation" if figures.spread == "std" else "[a..b]: least and largest"
        notes.append(f"Mean over seeds {seeds}. {what} over them.")
    elif seeds:
        notes.append(f"Seed {seeds}.")
    if any(cell.interval for cell in table.cells.values()):
        notes.append(
            "(a..b): Wilson's 95 % interval over the images, those of all seeds pooled; an image "
            "that several seeds share counts once, and more only as far as the seeds disagree on "
            "it. It does not say what other seeds would give."
        )
    notes.append("Bold: best of its column.")
    if table.missing or table.unfinished:
        begun = f"; {table.unfinished} begun and not finished" if table.unfinished else ""
        notes.append(
            f"{table.missing} of {table.expected} runs are missing (-, or [those there]){begun}."
        )
    return tuple(notes)
