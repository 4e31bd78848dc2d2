"""Tables as Markdown, LaTeX and CSV: the same runs give the same bytes."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from pmt.research.report.comparison import Comparison
from pmt.research.report.pivot import Pivot
from pmt.research.report.table_text import CellText, TableText

__all__ = ["FORMATS", "to_csv", "to_markdown", "to_tex"]

FORMATS = ("md", "tex", "csv")
_TEX = {
    "\\": r"\textbackslash{}",
    "±": r"$\pm$",
    "..": r"\,..\,",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


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
    """Write tables as LaTeX ``tabular``s for the package booktabs; the notes are comments."""
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
    """Write one line a cell, values as they are (accuracies 0..1), with full precision."""
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
