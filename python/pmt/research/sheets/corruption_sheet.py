"""The contact sheet of corruptions: a row for each, a column for each severity."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pmt.research.sheets.sheet import Group, Image, Row, Sheet

Corrupted = Callable[[str, int], Sequence[Image]]


def corruption_sheet(
    corrupted: Corrupted,
    names: Sequence[str],
    severities: Sequence[int],
    *,
    captions: Sequence[str],
    originals: Sequence[Image] | None = None,
    title: str = "",
    progress: Callable[[int], None] | None = None,
) -> Sheet:
    """Lay out images at every corruption and severity.

    Parameters
    ----------
    corrupted
        Called with a corruption and a severity; returns the corrupted images.
    names
        Corruptions, one row each.
    severities
        Columns.
    captions
        One for each image.
    originals
        The clean images, for a first column; left out where there are none.
    title
        First line of the picture.
    progress
        Called with the number of calls of `corrupted` so far.
    """
    rows = []
    for number, name in enumerate(names):
        columns = [] if originals is None else [originals]
        for done, severity in enumerate(severities, 1):
            columns.append(corrupted(name, severity))
            if progress is not None:
                progress(number * len(severities) + done)
        by_image = zip(*columns, strict=True)
        rows.append(Row(name, [tile for tiles in by_image for tile in tiles]))
    clean = () if originals is None else ("original",)
    headings = (*clean, *(f"severity {severity}" for severity in severities))
    groups = tuple(Group(caption, headings) for caption in captions)
    return Sheet(title, tuple(rows), groups)
