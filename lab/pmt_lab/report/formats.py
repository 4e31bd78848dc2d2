"""Tables as text, Markdown, LaTeX and CSV: the same runs give the same bytes."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from pmt._util.text import counted, printable
from pmt_lab.report.pivot import Cell, Comparison, Difference, Key, Pivot

__all__ = [
    "FORMATS",
    "CellText",
    "Figures",
    "TableText",
    "comparison_text",
    "name",
    "pivot_text",
    "to_csv",
    "to_markdown",
    "to_tex",
]

FORMATS = ("md", "tex", "csv")
# Differences that should be 0 may miss it by their rounding.
_LEAST = 1e-12
_TEX = {
    "\\": r"\textbackslash{}",
    "±": r"$\pm$",
    "..": r"\,..\,",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


class Figures:
    """Format of the values of one metric.

    Parameters
    ----------
    metric : str
        One of :data:`pmt_lab.report.METRICS`.
    spread : {"std", "range"}
        Figure after the mean: the standard deviation over seeds, or the smallest and largest value.
    """

    def __init__(self, metric: str, spread: str = "std") -> None:
        self.metric = metric
        self.spread = spread
        self._scale, self._digits, self.unit = _unit(metric)

    @property
    def title(self) -> str:
        """The metric and its unit: ``"test accuracy in %"``."""
        words = self.metric.replace("held_out", "held-out").replace("_", " ")
        return f"{words} in {self.unit}"

    def value(self, value: float, *, sign: bool = False) -> str:
        """Write one value."""
        text = f"{value * self._scale:{'+' if sign else ''},.{self._digits}f}"
        if not text.startswith("-") or float(text.replace(",", "")) != 0.0:
            return text
        # The end of an interval that excludes 0 keeps its side of it, however small it is.
        if sign and value < -_LEAST:
            return text
        return text.replace("-", "+" if sign else "", 1)

    def interval(self, ends: tuple[float, float] | None, *, sign: bool = False) -> str:
        """Write an interval; nothing without one."""
        if ends is None:
            return ""
        return f"({self.value(ends[0], sign=sign)}..{self.value(ends[1], sign=sign)})"

    def spread_of(self, cell: Cell) -> str:
        """Write the spread over seeds; nothing with fewer than two."""
        if len(cell.values) < 2 or cell.deviation is None:
            return ""
        if self.spread == "range":
            return f"[{self.value(min(cell.values))}..{self.value(max(cell.values))}]"
        return f"± {self.value(cell.deviation)}"


def _unit(metric: str) -> tuple[float, int, str]:
    if metric.endswith("accuracy"):
        return 100.0, 1, "%"
    if metric.endswith("loss"):
        return 1.0, 3, "nats"
    if metric == "macs":
        return 1e-9, 0, "GMAC"
    if metric.endswith("seconds"):
        return 1.0, 0, "s"
    return 1.0, 0, "forwards of a suffix"


@dataclass(frozen=True)
class CellText:
    """A cell: its text, and whether it is emphasized."""

    text: str
    bold: bool = False


@dataclass(frozen=True)
class TableText:
    """Title, head, rows of cells, and the notes that say what is in them."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[CellText, ...], ...]
    notes: tuple[str, ...]


def pivot_text(table: Pivot, figures: Figures, *, transpose: bool = False) -> TableText:
    """Write the means; the best of each column is bold, and stays so where it becomes a row.

    A mean without others in its column is not bold.
    """
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
    across = "row" if transpose else "column"
    bold = (f"Bold: best of its {across}.",) if any(best.values()) else ()
    notes = (*_notes(table, figures), *bold, *_notes_of_missing(table))
    text = TableText(figures.title, head, tuple(rows), notes)
    return _transposed(text, name(table.column_fields)) if transpose else text


def comparison_text(
    compared: Comparison, figures: Figures, *, transpose: bool = False
) -> TableText:
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
    text = TableText(title, head, tuple(rows), notes)
    return _transposed(text, name(table.column_fields)) if transpose else text


def _transposed(table: TableText, corner: str) -> TableText:
    """Return the table with its columns as rows."""
    head = (corner, *(row[0].text for row in table.rows))
    rows = tuple(
        (CellText(title), *(row[place] for row in table.rows))
        for place, title in enumerate(table.head[1:], 1)
    )
    return TableText(table.title, head, rows, table.notes)


def name(key: Key | Sequence[str]) -> str:
    """Return the name of a row, a column or their fields; a field that a run lacks is ``-``."""
    return printable(", ".join(str(part) or "-" for part in key))


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
        what = (
            "±: standard deviation"
            if figures.spread == "std"
            else "[a..b]: smallest and largest value"
        )
        notes.append(f"Mean over seeds {seeds}. {what} over them.")
    elif seeds:
        notes.append(f"Seed {seeds}.")
    if any(cell.interval for cell in table.cells.values()):
        notes.append(
            "(a..b): 95 % Wilson interval for the choice of test images, pooled over seeds. It "
            "does not include variation between seeds."
        )
    return tuple(notes)


def _notes_of_missing(table: Pivot) -> tuple[str, ...]:
    """Say what is missing, and which rows and columns have failed as a whole."""
    notes = []
    if table.missing or table.unfinished:
        begun = f"; {table.unfinished} begun and not finished" if table.unfinished else ""
        notes.append(
            f"{table.missing} of {table.expected} runs are missing (-, or [those there]){begun}."
        )
    if table.failed:
        they = "it" if table.failed == 1 else "them"
        notes.append(
            f"{counted(table.failed, 'run')} failed; the same `pmt-lab sweep` tries {they} again. "
            f"If the grid no longer has {they}, remove HASH.failed."
        )
    for what, keys in (("row", table.absent_rows), ("column", table.absent_columns)):
        if keys:
            names = "; ".join(name(key) for key in keys)
            notes.append(f"No {what} for {names}: runs failed and none is finished.")
    return tuple(notes)


def to_markdown(tables: Sequence[TableText]) -> str:
    """Write tables as Markdown."""
    parts = []
    for table in tables:
        lines = [f"**{table.title}**", "", _markdown_line(table.head)]
        lines.append(_markdown_line(["---"] * len(table.head)))
        lines += [_markdown_line([_bold(cell, "**") for cell in row]) for row in table.rows]
        lines += ["", *(f"- {note}" for note in table.notes)]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def to_tex(tables: Sequence[TableText]) -> str:
    """Write tables as LaTeX tables for the package booktabs; the notes are comments."""
    parts = []
    for table in tables:
        lines = [f"% {table.title}", *(f"% {note}" for note in table.notes)]
        lines.append(rf"\begin{{tabular}}{{l{'r' * (len(table.head) - 1)}}}")
        lines += [r"\toprule", _tex_line([_tex(cell) for cell in table.head]), r"\midrule"]
        lines += [_tex_line([_tex_cell(cell) for cell in row]) for row in table.rows]
        lines += [r"\bottomrule", r"\end{tabular}"]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def to_csv(table: Pivot, compared: Comparison | None) -> str:
    """Write one line per cell, values as they are (accuracies 0..1), with full precision."""
    titles = [*table.row_fields, *table.column_fields, "metric", "mean", "std", "min", "max"]
    titles += ["wilson_low", "wilson_high", "seeds", "missing", "best"]
    if compared is not None:
        titles += ["difference", "difference_low", "difference_high", "pairs"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(titles)
    for row in table.rows:
        for column in table.columns:
            cell = table.cells[row, column]
            low, high = cell.interval or (None, None)
            least = min(cell.values, default=None)
            line = [*row, *column, table.metric, cell.mean, cell.deviation, least]
            line += [max(cell.values, default=None), low, high, len(cell.values), cell.missing]
            line.append(int(row in table.best(column)))
            if compared is not None:
                found = compared.differences.get((row, column))
                ends = found.interval if found and found.interval else (None, None)
                line += [found.mean, *ends, found.pairs] if found else [None, None, None, 0]
            writer.writerow([_number(value) for value in line])
    return text.getvalue()


def _markdown_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _bold(cell: CellText, mark: str) -> str:
    return f"{mark}{cell.text}{mark}" if cell.bold else cell.text


def _tex_line(cells: Sequence[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _tex_cell(cell: CellText) -> str:
    text = _tex(cell.text)
    return rf"\textbf{{{text}}}" if cell.bold else text


def _tex(text: str) -> str:
    """Escape what means something to LaTeX, in one pass."""
    out = []
    at = 0
    while at < len(text):
        token = ".." if text.startswith("..", at) else text[at]
        minus = token == "-" and text[at + 1 : at + 2].isdigit()
        out.append("$-$" if minus else _TEX.get(token, token))
        at += len(token)
    return "".join(out)


def _number(value: object) -> object:
    """Return a float with ten digits: more than any figure has, and the same on every machine."""
    if value is None:
        return ""
    return f"{value:.10g}" if isinstance(value, float) else value
