"""What a contact sheet holds: rows of images with a label, under headings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Row:
    """A label and its images.

    Parameters
    ----------
    label
        What stands before the images.
    tiles
        uint8 of shape (H, W, 1) or (H, W, 3); None leaves a place empty.
    note
        A second, smaller line under the label.
    """

    label: str
    tiles: Sequence[Image | None]
    note: str = ""


@dataclass(frozen=True)
class Group:
    """Columns that belong together: a title over them and a heading for each."""

    title: str
    headings: tuple[str, ...]


@dataclass(frozen=True)
class Sheet:
    """A whole contact sheet.

    Parameters
    ----------
    title
        First line of the picture.
    rows
        At least one, of as many tiles at most as the groups have columns.
    groups
        At least one; their headings, blank or not, say how many columns there are.
    """

    title: str
    rows: tuple[Row, ...]
    groups: tuple[Group, ...]

    @property
    def columns(self) -> int:
        """Number of columns of all groups."""
        return sum(len(group.headings) for group in self.groups)

    @property
    def tile_shape(self) -> tuple[int, int]:
        """Largest height and largest width of the tiles, in pixels."""
        shapes = [tile.shape for row in self.rows for tile in row.tiles if tile is not None]
        return max(shape[0] for shape in shapes), max(shape[1] for shape in shapes)
