"""The pictures of a notebook, which stand beside it as files.

In the notebook an output that is a picture holds a Markdown link instead of its bytes: a comparison
of two versions shows what people read, and the notebook still shows the picture. Pictures are
light, and the same bytes as long as they show the same.
"""

import base64
import io
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import numpy as np
from PIL import Image

COLORS = 64  # plots have few, and a palette takes a quarter of the bytes
# Root mean square over all pixels and channels, 0..255: another build of the same libraries rounds
# an edge otherwise; a marker that moves by three pixels makes 1.5.
TOLERANCE = 0.5
PNG, LINK = "image/png", "text/markdown"
PICTURES = "pictures"  # beside the notebooks


def read(path: Path) -> nbformat.NotebookNode:
    """Return a notebook with its pictures in it; where a file is missing, the link stays."""
    notebook = nbformat.read(path, as_version=4)
    for data, name in _links(notebook.cells):
        file = path.parent / name
        if file.exists():
            data[PNG] = base64.b64encode(file.read_bytes()).decode()
            del data[LINK]
    return notebook


def missing(cells: list[nbformat.NotebookNode]) -> list[str]:
    """Return the pictures without a file, in cells as :func:`read` returns them."""
    return [name for _, name in _links(cells)]


def write(notebook: nbformat.NotebookNode, path: Path) -> None:
    """Write a notebook, and beside it its pictures; those that it no longer has are removed."""
    folder = path.parent / PICTURES
    folder.mkdir(exist_ok=True)
    left = set(folder.glob(f"{path.stem}-*.png"))
    for count, data in enumerate([*pictures(notebook.cells)], start=1):
        file = folder / f"{path.stem}-{count}.png"
        file.write_bytes(base64.b64decode(data.pop(PNG)))
        data[LINK] = f"![Figure {count}]({PICTURES}/{file.name})"
        left.discard(file)
    for file in left:
        file.unlink()
    nbformat.write(notebook, path)


def pictures(cells: list[nbformat.NotebookNode]) -> Iterator[nbformat.NotebookNode]:
    """Yield the data of each output that is a picture: base64 by ``image/png``."""
    yield from _data(cells, PNG)


def lighten(cells: list[nbformat.NotebookNode]) -> None:
    """Give each picture few colors, in place."""
    for data in pictures(cells):
        data[PNG] = _light(data[PNG])


def keep_pictures(cells: list[nbformat.NotebookNode], old: list[nbformat.NotebookNode]) -> None:
    """Take each picture's bytes from ``old`` where both show the same, in place."""
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


def _data(cells: list[nbformat.NotebookNode], kind: str) -> Iterator[nbformat.NotebookNode]:
    """Yield the data of each output that has this MIME type."""
    for cell in cells:
        for output in cell.get("outputs", ()):
            if kind in output.get("data", {}):
                yield output["data"]


def _links(cells: list[nbformat.NotebookNode]) -> Iterator[tuple[nbformat.NotebookNode, str]]:
    """Yield the data of each output that links to a picture, and the picture's place."""
    for data in _data(cells, LINK):
        found = re.fullmatch(rf"!\[[^]]*\]\(({PICTURES}/[^)]+)\)", data[LINK])
        if found:
            yield data, found[1]


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
