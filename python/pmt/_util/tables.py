"""Tables as aligned text, and as HTML for notebooks; cells are untrusted text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pmt._util.printable import printable

__all__ = ["html_table", "shortened", "table"]


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[str] = ()) -> str:
    """Lay out lines of cells; columns titled in ``left`` are aligned left, the others right.

    Control characters are escaped, so that a name stays in its cell.
    """
    titles = [printable(title) for title in titles]
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [titles, *rows]) for i in range(len(titles))]

    def laid_out(line: Sequence[str]) -> str:
        cells = (
            cell.ljust(width) if title in left else cell.rjust(width)
            for cell, width, title in zip(line, widths, titles, strict=True)
        )
        return "  ".join(cells).rstrip()

    return "\n".join(laid_out(line) for line in [titles, *rows])


def shortened(
    rows: Sequence[Sequence[str]], most: int, *, keep: Sequence[int] = ()
) -> list[list[str]]:
    """Return at most this many rows: the first ones, the last ones and those to ``keep``.

    A row of ``...`` and the number of those left out stands in each gap.
    """
    if len(rows) <= most:
        return [list(row) for row in rows]
    head = most // 2
    shown = sorted({*range(head), *keep, *range(len(rows) - (most - head - len(keep)), len(rows))})
    found: list[list[str]] = []
    for place, row in enumerate(shown):
        missing = row - (shown[place - 1] if place else -1) - 1
        if missing:
            found.append(["...", f"{missing:,} more", *[""] * (len(rows[row]) - 2)])
        found.append(list(rows[row]))
    return found


def html_table(caption: str, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table for ``_repr_html_``; an empty caption and titles all empty are left out."""
    title = f"<caption>{_html(caption)}</caption>" if caption else ""
    head = _html_row("th", titles) if any(titles) else ""
    body = "".join(_html_row("td", row) for row in rows)
    return f"<table>{title}{f'<thead>{head}</thead>' if head else ''}<tbody>{body}</tbody></table>"


def _html_row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{_html(cell)}</{tag}>" for cell in cells) + "</tr>"


def _html(text: str) -> str:
    return escape(printable(text))
