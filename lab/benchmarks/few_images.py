r"""How many images alignment needs, and whether few of them do harm.

    python benchmarks/few_images.py --data DATA --out runs/few_images

DATA holds the folder cifar-10-batches-bin. The bundled cifar10_mcunet is aligned, without labels,
to 8 to 256 training images of each corruption of severity 5 and of clean images, drawn three times,
and scored on 1,000 test images. A stopped run continues: finished rows are read from the folder.

    python benchmarks/few_images.py --table results/few-images.json
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import pmt
from pmt import corruptions, datasets
from pmt.cli.output import table
from pmt.train.prepare import align
from pmt_lab.files import kept_rows, write_rows

SIZES = (8, 16, 32, 64, 256)
DRAWS = 3
TESTED = 1000


def rows_of(kind: str, data: Path, threads: int) -> dict[str, Any]:
    """Return the accuracies of a corruption: before, and by number of images and draw."""
    start = pmt.load("cifar10_mcunet")
    parts = [
        datasets.load(data / "cifar-10-batches-bin", split=split, size=128, limit=limit)
        for split, limit in (("train", DRAWS * max(SIZES)), ("test", TESTED))
    ]
    if kind != "clean":
        parts = [
            corruptions.corrupt(part, kind, 5, seed=seed) for seed, part in enumerate(parts, 11)
        ]
    train, test = parts
    found: dict[str, Any] = {"kind": kind, "start": start.evaluate(test).accuracy}
    for size in SIZES:
        found[str(size)] = []
        for draw in range(DRAWS):
            model = start.copy()
            align(model, train.images[draw * size : (draw + 1) * size], threads=threads)
            found[str(size)].append(model.evaluate(test).accuracy)
    return found


def table_of(found: list[dict[str, Any]]) -> str:
    """Return the table as text: the mean over the draws, and the lowest of them."""

    def cell(values: list[float]) -> str:
        return f"{100 * sum(values) / len(values):.1f} ({100 * min(values):.1f})"

    rows = [
        [one["kind"], f"{100 * one['start']:.1f}", *(cell(one[str(size)]) for size in SIZES)]
        for one in found
    ]
    return table(["corruption", "start", *map(str, SIZES)], rows, left=("corruption",))


def main() -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--out", type=Path, help="folder of the figures")
    parser.add_argument("--results", type=Path, help="file that keeps what the table needs")
    parser.add_argument("--table", type=Path, help="run nothing; the table of such a file")
    parser.add_argument("--threads", type=int, default=0, help="0 takes all")
    arguments = parser.parse_args()
    if arguments.table is not None:
        print(table_of(json.loads(arguments.table.read_text())))
        return
    if None in (arguments.data, arguments.out):
        parser.error("--data and --out are needed, or --table alone")
    rows = {
        kind: partial(rows_of, kind, arguments.data, arguments.threads)
        for kind in ("clean", *corruptions.names())
    }
    found = []
    for row in kept_rows(arguments.out, rows):
        found.append(row)
        print(row["kind"], flush=True)
    print(table_of(found))
    if arguments.results is not None:
        write_rows(arguments.results, found)


if __name__ == "__main__":
    main()
