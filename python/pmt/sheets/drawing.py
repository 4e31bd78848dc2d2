"""Drawing of a contact sheet with Pillow: places of everything, in pixels."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from pmt._util.extras import import_extra
from pmt.datasets.picture import to_picture
from pmt.sheets.sheet import Image, Sheet

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
BACKGROUND = (255, 255, 255)
INK = (32, 33, 36)
FAINT_INK = (95, 99, 104)
TITLE_SIZE = 22
LABEL_SIZE = 17
NOTE_SIZE = 13
HEADING_SIZE = 14
WIDEST_LABEL = 320
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
    """Choose the size of the tiles and the number of blocks, for labels of a width in pixels.

    Small images are enlarged by a whole factor, so that every pixel stays a square; large ones are
    reduced. The rows are broken into as many blocks as bring the picture nearest to 3:2. A
    ValueError refuses a picture of more than 100 million pixels.
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


def draw(sheet: Sheet) -> Any:
    """Draw a sheet.

    Returns
    -------
    PIL.Image.Image
        RGB.

    Raises
    ------
    ModuleNotFoundError
        If Pillow is not installed.
    ValueError
        If the sheet is too large.
    """
    return _Drawing(sheet).drawn()


def png(sheet: Sheet) -> bytes:
    """Return the bytes of the drawn sheet as a PNG file."""
    buffer = io.BytesIO()
    draw(sheet).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


class _Drawing:
    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self.pillow, font = _pillow()
        self.title, self.label = font(TITLE_SIZE), font(LABEL_SIZE)
        self.note, self.heading = font(NOTE_SIZE), font(HEADING_SIZE)
        widths = [self.label.getlength(row.label) for row in sheet.rows]
        widths += [self.note.getlength(row.note) for row in sheet.rows]
        has_notes = any(row.note for row in sheet.rows)
        label_height = LABEL_SIZE + (NOTE_SIZE + 4 if has_notes else 0) + 4
        label_width = min(WIDEST_LABEL, int(max(widths)) + 1)
        self.places: Geometry = geometry(sheet, label_width, label_height)

    def drawn(self) -> Any:
        self.picture = self.pillow.new("RGB", self.places.size, BACKGROUND)
        self.pen = _pen(self.picture)
        width = self.places.size[0] - 2 * MARGIN
        middle = MARGIN + (TITLE_HEIGHT - 14) // 2
        self._text((MARGIN, middle), self.sheet.title, self.title, INK, width, "lm")
        for block in range(self.places.blocks):
            self._draw_headings(block)
        for number in range(len(self.sheet.rows)):
            self._draw_row(number)
        return self.picture

    def _draw_headings(self, block: int) -> None:
        """Titles of the groups, and under them the headings, each over the middle of its tile."""
        places, column = self.places, 0
        top = MARGIN + TITLE_HEIGHT
        if block * places.rows >= len(self.sheet.rows):
            return
        for group in self.sheet.groups:
            left = places.column_left(block, column)
            room = len(group.headings) * (places.tile_width + GAP) - GAP
            line = top
            if any(each.title for each in self.sheet.groups):
                middle = line + HEADING_HEIGHT // 2
                self._text((left, middle), group.title, self.label, INK, room, "lm")
                line += HEADING_HEIGHT
            short = any(self.heading.getlength(h) > places.tile_width for h in group.headings)
            for heading in group.headings:
                text = heading.rpartition(" ")[2] if short else heading
                center = places.column_left(block, column) + places.tile_width // 2
                spot = (center, line + HEADING_HEIGHT // 2)
                self._text(spot, text, self.heading, FAINT_INK, places.tile_width, "mm")
                column += 1

    def _draw_row(self, number: int) -> None:
        row, places = self.sheet.rows[number], self.places
        block, line = divmod(number, places.rows)
        top = places.row_top(line)
        left, middle = places.block_left(block), top + (places.row_height - GAP) // 2
        up = (NOTE_SIZE + 4) // 2 if row.note else 0
        width = places.label_width
        self._text((left, middle - up), row.label, self.label, INK, width, "lm")
        if row.note:
            low = middle + (LABEL_SIZE + 4) // 2
            self._text((left, low), row.note, self.note, FAINT_INK, width, "lm")
        for column, tile in enumerate(row.tiles):
            if tile is not None:
                self._paste(tile, places.column_left(block, column), top)

    def _paste(self, tile: Image, left: int, top: int) -> None:
        places = self.places
        image = to_picture(self.pillow, tile)
        scale = min(places.tile_width / image.width, places.tile_height / image.height)
        size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        filters = self.pillow.Resampling
        image = image.resize(size, filters.NEAREST if scale >= 1 else filters.LANCZOS)
        spare = (places.tile_width - size[0], places.row_height - GAP - size[1])
        self.picture.paste(image.convert("RGB"), (left + spare[0] // 2, top + spare[1] // 2))

    def _text(
        self, spot: tuple[int, int], text: str, font: Any, ink: Any, width: int, anchor: str
    ) -> None:
        """Write text, its end left out where it is wider than ``width``."""
        if font.getlength(text) > width:
            while text and font.getlength(text + "...") > width:
                text = text[:-1]
            text += "..."
        self.pen.text(spot, text, font=font, fill=ink, anchor=anchor)


def _pillow() -> tuple[ModuleType, Any]:
    """Return Pillow's Image module and a function that gives a font of a size in pixels."""
    module: ModuleType = import_extra("PIL.Image", "contact sheets need Pillow", "data")
    fonts = import_extra("PIL.ImageFont", "contact sheets need Pillow", "data")
    return module, lambda size: fonts.load_default(size=size)


def _pen(picture: Any) -> Any:
    from PIL import ImageDraw

    return ImageDraw.Draw(picture)
