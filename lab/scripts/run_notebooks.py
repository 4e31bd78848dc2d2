#!/usr/bin/env python3
"""Run the notebooks and write their outputs: lab/scripts/run_notebooks.py [--stored] [NAME...].

Each notebook runs in a folder of its own, beside which lie the versioned results, as in a checkout.
With --stored only the cells run that show those results, which takes seconds; the other outputs
stay.
"""

import argparse
import sys
import tempfile
import time
from copy import deepcopy
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from notebook_pictures import keep_pictures, lighten, missing, read, write

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "notebooks"
TIMEOUT = 600  # seconds of a cell
STORED = 'stored("'  # in every cell that shows a versioned result
_IMPORTS = """import matplotlib.pyplot as plt
from pmt_lab.reproduce.stored import stored"""
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


class NotRunError(Exception):
    """A notebook whose outputs are not those of a run from top to bottom."""


def run(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Run a notebook in ``folder`` and return it with its outputs."""
    notebook = read(path)
    _execute(notebook, folder)
    return notebook


def run_stored(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Run the cells that show versioned results; the others keep their outputs."""
    notebook = read(path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    shown = [cell for cell in code if STORED in cell.source]
    for count, cell in enumerate(code, start=1):
        if cell in shown:
            cell["execution_count"] = count
        elif cell.execution_count != count:
            raise NotRunError(f"cell {cell.id} was added, moved or run alone; leave out --stored")
    lost = missing([cell for cell in code if cell not in shown])
    if lost:
        raise NotRunError(f"{lost[0]} is missing; leave out --stored, and the run draws it")
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
        keep_pictures(notebook.cells, read(known[name]).cells)
        notebook["metadata"] = {"kernelspec": _KERNEL}
        for cell in notebook.cells:  # editors leave more
            cell["metadata"] = {key: cell.metadata[key] for key in {"tags"} & cell.metadata.keys()}
        write(notebook, known[name])
        size = known[name].stat().st_size / 1024
        print(f"{name}: {time.monotonic() - start:.0f} s, {size:.0f} KB", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
