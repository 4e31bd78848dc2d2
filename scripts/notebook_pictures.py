"""Pictures in notebooks: light, and the same bytes as long as they show the same."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator

import nbformat
import numpy as np
from PIL import Image

COLORS = 64  # plots have few, and a palette takes a quarter of the bytes
# Root mean square over all pixels and channels, 0..255: another build of the same libraries rounds
# an edge otherwise; a marker that moves by three pixels makes 1.5.
TOLERANCE = 0.5
PNG = "image/png"


def lighten(cells: list[nbformat.NotebookNode]) -> None:
    """Give each picture few colors, in place."""
    for data in pictures(cells):
        data[PNG] = _light(data[PNG])


def keep_pictures(cells: list[nbformat.NotebookNode], old: list[nbformat.NotebookNode]) -> None:
    """Take each picture's bytes from ``old`` where both show the same, in place.

    A committed notebook then changes only where what it shows has changed.
    """
    known = [data[PNG] for data in pictures(old)]
    for data in pictures(cells):
        same = [png for png in known if difference(png, data[PNG]) <= TOLERANCE]
        if same:
            data[PNG] = same[0]


def difference(first: str, second: str) -> float:
    """Return the root mean square of two pictures' difference, 0..255; infinite for other sizes."""
    if first == second:
        return 0.0
    one, other = (np.asarray(_decoded(png), float) for png in (first, second))
    if one.shape != other.shape:
        return float("inf")
    return float(np.sqrt(np.mean((one - other) ** 2)))


def pictures(cells: list[nbformat.NotebookNode]) -> Iterator[nbformat.NotebookNode]:
    """Yield the data of each output that is a picture: base64 by ``image/png``."""
    for cell in cells:
        for output in cell.get("outputs", ()):
            if PNG in output.get("data", {}):
                yield output["data"]


def _decoded(png: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")


def _light(png: str) -> str:
    """Return a picture with few colors, base64 as it came."""
    small = io.BytesIO()
    # The median cut, Pillow's own choice, gives a plot's blue and green lines one color.
    method = Image.Quantize.FASTOCTREE
    picture = _decoded(png).quantize(COLORS, method, dither=Image.Dither.NONE)
    picture.save(small, "PNG", optimize=True)
    return base64.b64encode(small.getvalue()).decode()
