r"""How many images alignment needs, and whether few of them do harm.

    python benchmarks/few_images.py --data DATA --out runs/few_images

DATA holds the folder cifar-10-batches-bin. The bundled cifar10_mcunet is aligned, without labels,
to 8 to 256 training images of each corruption of severity 5 and of clean images, drawn three times,
and scored on 1,000 test images. A stopped run continues: finished rows are read from the folder.

    python benchmarks/few_images.py --table results/few-images.json
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import pmt
from pmt import corruptions, datasets
from pmt.cli.output import table
from pmt.train.prepare import align
from pmt_lab.kept_benchmark import run_benchmark

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


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Declare the number of threads."""
    parser.add_argument("--threads", type=int, default=0, help="0 takes all")


def rows_by_name(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the function for the row of each corruption."""
    return {
        kind: partial(rows_of, kind, arguments.data, arguments.threads)
        for kind in ("clean", *corruptions.names())
    }


def main() -> None:
    """Run the missing rows and print the table."""
    run_benchmark(__doc__, rows_by_name, table_of, add_threads)


if __name__ == "__main__":
    main()
