#!/usr/bin/env python3
"""Run the notebooks and write their outputs: lab/scripts/run_notebooks.py [--stored] [NAME...].

Each notebook runs in a folder of its own, beside which lie the versioned results, as in a checkout.
With --stored only the cells run that show those results, which takes seconds; the other outputs
stay. Pictures are light, and the same bytes as long as they show the same.
"""

import argparse
import base64
import io
import sys
import tempfile
import time
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import nbformat
import numpy as np
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "notebooks"
TIMEOUT = 600  # seconds of a cell
STORED = 'stored("'  # in every cell that shows a versioned result
_IMPORTS = """import matplotlib.pyplot as plt
from pmt_lab.reproduce.stored import stored"""
COLORS = 64  # plots have few, and a palette takes a quarter of the bytes
# Root mean square over all pixels and channels, 0..255: another build of the same libraries rounds
# an edge otherwise; a marker that moves by three pixels makes 1.5.
TOLERANCE = 0.5
PNG = "image/png"
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


class NotRunError(Exception):
    """A notebook whose outputs are not those of a run from top to bottom."""


def run(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Run a notebook in ``folder`` and return it with its outputs."""
    notebook = nbformat.read(path, as_version=4)
    _execute(notebook, folder)
    return notebook


def run_stored(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Run the cells that show versioned results; the others keep their outputs."""
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    shown = [cell for cell in code if STORED in cell.source]
    for count, cell in enumerate(code, start=1):
        if cell in shown:
            cell["execution_count"] = count
        elif cell.execution_count != count:
            raise NotRunError(f"cell {cell.id} was added, moved or run alone; leave out --stored")
    if not shown:
        return notebook
    part = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(_IMPORTS), *deepcopy(shown)])
    _execute(part, folder)
    for cell, ran in zip(shown, part.cells[1:], strict=True):
        cell["outputs"] = ran.outputs
    return notebook


def _execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run all cells in place; pictures become light."""
    beside = folder / "lab"
    beside.mkdir()
    (beside / "results").symlink_to(ROOT / "lab" / "results")
    place = folder / "notebooks"
    place.mkdir()
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT,
        kernel_name=_KERNEL["name"],
        resources={"metadata": {"path": str(place)}},
        record_timing=False,
        coalesce_streams=True,
        startup_timeout=TIMEOUT,
        extra_arguments=["--IPKernelApp.log_level=40"],  # errors alone
    )
    client.execute()
    lighten(notebook.cells)


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


def main() -> int:
    known = {path.stem: path for path in sorted(FOLDER.glob("*.ipynb"))}
    parser = argparse.ArgumentParser(description="Run the notebooks and write their outputs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="by default all of them")
    parser.add_argument("--stored", action="store_true", help="run what shows versioned results")
    arguments = parser.parse_args()
    names = arguments.names or list(known)
    work = run_stored if arguments.stored else run
    for name in names:
        if name not in known:
            parser.error(f"NAME = {name!r} is not a notebook; there are {', '.join(known)}")
    failed = []
    for name in names:
        start = time.monotonic()
        try:
            with tempfile.TemporaryDirectory(prefix="pmt-notebook-") as folder:
                notebook = work(known[name], Path(folder))
        except (CellExecutionError, NotRunError) as error:
            failed.append(name)
            print(f"{name}: failed\n{error}", flush=True)
            continue
        keep_pictures(notebook.cells, nbformat.read(known[name], as_version=4).cells)
        notebook["metadata"] = {"kernelspec": _KERNEL}
        for cell in notebook.cells:  # editors leave more
            cell["metadata"] = {key: cell.metadata[key] for key in {"tags"} & cell.metadata.keys()}
        nbformat.write(notebook, known[name])
        size = known[name].stat().st_size / 1024
        print(f"{name}: {time.monotonic() - start:.0f} s, {size:.0f} KB", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
