"""Where everything of a contact sheet stands, in pixels."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pmt.research.sheets.sheet import Sheet

MARGIN = 20
GAP = 4
GROUP_GAP = 16
BLOCK_GAP = 36
TITLE_HEIGHT = 42
HEADING_HEIGHT = 24
LABEL_GAP = 14
# A tile is at most so large, and smaller where the sheet has many.
LARGEST_TILE = 112
REDUCED_TILES = (160, 128, 96, 64)
PIXELS_OF_TILES = 4_000_000
LARGEST_SHEET = 100_000_000
# Width over height that the rows are broken into blocks for.
ASPECT = 1.5


@dataclass(frozen=True)
class Geometry:
    """Sizes of a sheet whose rows stand in blocks, side by side, read down each block."""

    tile_height: int
    tile_width: int
    label_width: int
    blocks: int
    rows: int
    headings_height: int
    columns: tuple[int, ...]
    block_width: int
    row_height: int

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture."""
        width = self.blocks * self.block_width + (self.blocks - 1) * BLOCK_GAP
        height = TITLE_HEIGHT + self.headings_height + self.rows * self.row_height - GAP
        return width + 2 * MARGIN, height + 2 * MARGIN

    def block_left(self, block: int) -> int:
        """Left edge of a block."""
        return MARGIN + block * (self.block_width + BLOCK_GAP)

    def row_top(self, row: int) -> int:
        """Upper edge of a row, counted within its block."""
        return MARGIN + TITLE_HEIGHT + self.headings_height + row * self.row_height

    def column_left(self, block: int, column: int) -> int:
        """Left edge of a column of tiles."""
        return self.block_left(block) + self.columns[column]


def geometry(sheet: Sheet, label_width: int, label_height: int) -> Geometry:
    """Choose the size of the tiles and the number of blocks.

    Small images are enlarged by a whole factor, so that every pixel stays a square; large ones
    are reduced. The rows are broken into as many blocks as bring the picture nearest to 3:2.

    Parameters
    ----------
    sheet
        What is to be drawn.
    label_width
        Width of the widest label.
    label_height
        Height of the highest, with its note.

    Raises
    ------
    ValueError
        The picture would have more than 100 million pixels.
    """
    height, width = _tile_size(sheet)
    columns, left = [], label_width + LABEL_GAP
    for group in sheet.groups:
        for _ in group.headings:
            columns.append(left)
            left += width + GAP
        left += GROUP_GAP - GAP
    headings = any(heading for group in sheet.groups for heading in group.headings)
    titles = any(group.title for group in sheet.groups)
    candidates = [
        Geometry(
            tile_height=height,
            tile_width=width,
            label_width=label_width,
            blocks=blocks,
            rows=math.ceil(len(sheet.rows) / blocks),
            headings_height=HEADING_HEIGHT * (headings + titles),
            columns=tuple(columns),
            block_width=left - GROUP_GAP,
            row_height=max(height, label_height) + GAP,
        )
        for blocks in range(1, len(sheet.rows) + 1)
    ]
    best = min(candidates, key=lambda each: abs(math.log(each.size[0] / each.size[1] / ASPECT)))
    if best.size[0] * best.size[1] > LARGEST_SHEET:
        raise ValueError(
            f"the sheet would have {best.size[0]} x {best.size[1]} pixels: choose fewer images"
        )
    return best


def _tile_size(sheet: Sheet) -> tuple[int, int]:
    height, width = sheet.tile_shape
    side = max(height, width)
    scales = [float(factor) for factor in range(max(1, LARGEST_TILE // side), 0, -1)]
    if side > REDUCED_TILES[0]:
        scales = []
    scales += [reduced / side for reduced in REDUCED_TILES if reduced < side]
    tiles = len(sheet.rows) * sheet.columns
    for scale in scales:
        if tiles * (side * scale + GAP) ** 2 <= PIXELS_OF_TILES:
            break
    return max(1, round(height * scale)), max(1, round(width * scale))
