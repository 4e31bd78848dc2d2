"""Contact sheets of corruptions and data sets."""

from __future__ import annotations

import numpy as np

from pmt._util.arrays import Uint8Array
from pmt._util.checks import check_type
from pmt._util.optional_types import Axes
from pmt._util.plots import SMALL, one_axes, plain_text
from pmt._util.text import counted
from pmt.sheets import Sheet

_GAP = 0.06  # between tiles, as a share of a tile
_INCHES = 0.75  # of a tile
_MOST_TILES = 500  # of a row or a column: matplotlib draws at most 2^16 pixels
_MOST_PIXELS = 100_000_000


def plot_sheet(sheet: Sheet, *, ax: Axes | None = None) -> Axes:
    """Draw a contact sheet: a row of images for each corruption or class.

    Parameters
    ----------
    sheet : Sheet
        See :func:`pmt.sheets.make_sheet`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; new ones by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes; its ticks are the labels of rows and columns.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    ValueError
        If there are more images than can be drawn.
    """
    check_type("sheet", sheet, Sheet, "a pmt.sheets.Sheet; pmt.sheets.make_sheet(data) makes one")
    height, width = sheet.tile_shape
    tall = _INCHES * height / width
    ax = one_axes(ax, 1.6 + _INCHES * sheet.columns, 0.8 + tall * len(sheet.rows))
    down, across = (max(1, round(_GAP * side)) for side in (height, width))
    ax.imshow(_mosaic(sheet, down, across), interpolation="nearest", aspect="equal")
    middles = (np.arange(len(sheet.rows)) + 0.5) * (height + down) - down / 2 - 0.5
    ax.set_yticks(middles, [_label(row.label, row.note) for row in sheet.rows], fontsize=SMALL)
    columns = (np.arange(sheet.columns) + 0.5) * (width + across) - across / 2 - 0.5
    ax.set_xticks(columns, _headings(sheet), fontsize=SMALL)
    ax.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
    ax.spines[:].set_visible(False)
    if sheet.title:
        ax.set_title(plain_text(sheet.title), fontsize="medium")
    return ax


def _mosaic(sheet: Sheet, down: int, across: int) -> Uint8Array:
    """Return all tiles in one picture, white between them."""
    height, width = sheet.tile_shape
    rows, columns = len(sheet.rows), sheet.columns
    shape = (rows * (height + down) - down, columns * (width + across) - across, 3)
    if max(rows, columns) > _MOST_TILES or shape[0] * shape[1] > _MOST_PIXELS:
        raise ValueError(
            f"the sheet has {counted(rows, 'row')} of {columns} images of {height}x{width} pixels: "
            f"at most {_MOST_TILES} rows and images a row, and {_MOST_PIXELS:,} pixels, are drawn; "
            "choose fewer images"
        )
    picture = np.full(shape, 255, np.uint8)
    for i, row in enumerate(sheet.rows):
        for j, tile in enumerate(row.tiles):
            if tile is not None:
                top, left = i * (height + down), j * (width + across)
                picture[top : top + tile.shape[0], left : left + tile.shape[1]] = tile
    return picture


def _headings(sheet: Sheet) -> list[str]:
    """Return the text above each column: "severity 1", "2", ...; a title above its first."""
    texts: list[str] = []
    titled = any(group.title for group in sheet.groups)
    for group in sheet.groups:
        for place, heading in enumerate(group.headings):
            word, _, number = heading.rpartition(" ")
            told = any(earlier.startswith(f"{word} ") for earlier in group.headings[:place])
            title = group.title if place == 0 else ""
            text = number if word and told else heading
            texts.append(f"{title}\n{text}" if titled else text)
    return texts


def _label(label: str, note: str) -> str:
    return f"{plain_text(label)}\n{plain_text(note)}" if note else plain_text(label)
