r"""Accuracy behind an input stage that forwards choose, without any label, on every corruption.

    python benchmarks/input_stage.py --data DATA --out runs/input_stage

DATA holds the folder cifar-10-batches-bin. The bundled cifar10_mcunet is aligned, without labels,
to 300 training images of each corruption and of clean images, with and without the choice of an
input stage, and scored on 1,000 test images. A stopped run continues: finished rows are read from
the folder.

    python benchmarks/input_stage.py --table results/input-stage.json
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import pmt
from pmt import corruptions, datasets
from pmt.cli.output import table
from pmt.train.prepare import align, choose_input_stage
from pmt_lab.kept_benchmark import run_benchmark

IMAGES = 300
TESTED = 1000
MOST_DRAWS = 3


def row_of(kind: str, severity: int, draw: int, data: Path, threads: int) -> dict[str, Any]:
    """Return the accuracies on a corruption: before, aligned, and aligned behind the choice."""
    folder = data / "cifar-10-batches-bin"
    train = datasets.load(folder, split="train", limit=MOST_DRAWS * IMAGES)
    train, test = (
        train[draw * IMAGES : (draw + 1) * IMAGES],
        datasets.load(folder, split="test", limit=TESTED),
    )
    if kind != "clean":
        train, test = (
            corruptions.corrupt(part, kind, severity, seed=seed)
            for part, seed in ((train, 11 + 10 * draw), (test, 12))
        )
    start = pmt.load("cifar10_mcunet").with_input_stage(pmt.InputStage(train.pixel_size))
    aligned, chosen = start.copy(), start.copy()
    align(aligned, train.images, threads=threads)
    found = choose_input_stage(chosen, train.images, threads=threads)
    return {
        "kind": kind,
        "severity": severity,
        "draw": draw,
        "start": start.evaluate(test, threads=threads).accuracy,
        "aligned": aligned.evaluate(test, threads=threads).accuracy,
        "chosen": chosen.evaluate(test, threads=threads).accuracy,
        "filters": [] if not found.changed else [str(one) for one in found.stage.filters],
        "trials": len(found.trials),
        "macs": found.macs,
    }


def table_of(found: list[dict[str, Any]], severity: int) -> str:
    """Return the table of a severity as text: means over the draws."""
    kinds = dict.fromkeys(row["kind"] for row in found if row["severity"] in (0, severity))
    rows = []
    for kind in kinds:
        own = [r for r in found if r["kind"] == kind and r["severity"] in (0, severity)]
        means = [
            100 * sum(r[key] for r in own) / len(own) for key in ("start", "aligned", "chosen")
        ]
        filters = "; ".join(dict.fromkeys(", ".join(r["filters"]) or "none" for r in own))
        change = f"{means[2] - means[1]:+.1f}"
        rows.append([kind, *(f"{mean:.1f}" for mean in means), change, filters])
    titles = ["corruption", "start", "aligned", "behind the stage", "change", "filters"]
    return table(titles, rows, left=("corruption", "filters"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which cases are run."""
    parser.add_argument("--severities", type=int, nargs="+", default=[5, 3, 1])
    parser.add_argument("--draws", type=int, default=MOST_DRAWS)
    parser.add_argument("--threads", type=int, default=0, help="0 takes all")


def rows_by_name(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what makes each row."""
    cases = [("clean", 0)]
    cases += [(kind, s) for s in arguments.severities for kind in corruptions.names()]
    return {
        f"{kind}-{severity}-{draw}": partial(
            row_of, kind, severity, draw, arguments.data, arguments.threads
        )
        for draw in range(arguments.draws)
        for kind, severity in cases
    }


def tables_of(found: list[dict[str, Any]]) -> str:
    """Return a table a severity."""
    severities = sorted({row["severity"] for row in found} - {0}, reverse=True)
    return "\n\n".join(f"Severity {s}\n{table_of(found, s)}" for s in severities)


def main() -> None:
    """Run what is missing and print the tables."""
    run_benchmark(__doc__, rows_by_name, tables_of, add_arguments)


if __name__ == "__main__":
    main()
