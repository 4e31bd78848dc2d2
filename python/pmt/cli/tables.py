"""Text tables."""

from __future__ import annotations

from collections.abc import Sequence

from pmt._util.printable import printable

__all__ = ["table"]


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[str] = ()) -> str:
    """Lay out a table.

    Parameters
    ----------
    titles : sequence of str
        Title of every column.
    rows : sequence of sequence of str
        Cells; control characters are escaped, so that a name stays in its cell.
    left : sequence of str
        Titles of the columns to align left; the others are aligned right.

    Returns
    -------
    str
        Lines without trailing spaces, joined by newlines.
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
