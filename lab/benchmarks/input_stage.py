r"""Accuracy behind an input stage that forwards choose, without any label.

    python benchmarks/input_stage.py --data DATA --out runs/input_stage
    python benchmarks/input_stage.py --data DATA --out runs/camera --of camera

DATA holds the folder cifar-10-batches-bin. A network for CIFAR-10, by default the bundled
cifar10_mcunet, or fashion_mnist_dscnn on its bundled images, is aligned, without labels, to 300
training images of each corruption and of clean images, or of each fault of a camera
(pmt_lab.camera), with and without the choice of an input stage, and scored on 1,000 test images. A
stopped run continues: finished rows are read from the folder.

    python benchmarks/input_stage.py --table results/input-stage.json
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import pmt
from pmt import corruptions, datasets
from pmt._util.text import table
from pmt.datasets import Dataset
from pmt.train.prepare import align, choose_input_stage, measure_statistics, with_statistics
from pmt_lab.camera import FAULTS
from pmt_lab.kept_benchmark import run_benchmark

IMAGES = 300
TESTED = 1000
MOST_DRAWS = 3
CLEAN = 256  # images for the statistics of a network that has none
FASHION = "fashion_mnist_dscnn"
CAMERA = -1  # in place of a severity


def seen(data: Dataset, kind: str, severity: int, seed: int) -> Dataset:
    """Return images with a corruption or a fault of a camera, or as they are."""
    if kind == "clean":
        return data
    if severity == CAMERA:
        images = FAULTS[kind].take(data.images, seed)
        return Dataset(images, data.labels, data.class_names, name=kind)
    return corruptions.corrupt(data, kind, severity, seed=seed)


def images_of(model: str, data: Path, split: str, limit: int = 0) -> Dataset:
    """Return the images for a network, or as many of them as the limit; which, depends on it."""
    if model == FASHION:
        return datasets.bundled(split)[: limit or None]
    return datasets.load(data / "cifar-10-batches-bin", split=split, limit=limit)


def network(name: str, data: Path, size: tuple[int, int]) -> pmt.Model:
    """Return the network with statistics of clean images, and room for a stage."""
    model = pmt.load(name)
    model = model.with_input_stage(pmt.InputStage(size))
    if Path(name).suffix or name == FASHION:
        first = MOST_DRAWS * IMAGES if name == FASHION else -CLEAN  # after the draws
        clean = images_of(name, data, "train").images[first:]
        model = with_statistics(model, measure_statistics(model, np.ascontiguousarray(clean)))
    return model


def row_of(
    kind: str, severity: int, draw: int, model: str, data: Path, threads: int
) -> dict[str, Any]:
    """Return the accuracies: before, aligned, and aligned behind the choice."""
    train = images_of(model, data, "train", MOST_DRAWS * IMAGES)
    train = train[draw * IMAGES : (draw + 1) * IMAGES]
    start = network(model, data, train.images.shape[1:3])
    train = seen(train, kind, severity, 11 + 10 * draw)
    test = seen(images_of(model, data, "test", TESTED), kind, severity, 12)
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


def change_of(rows: list[dict[str, Any]]) -> float:
    """Return the mean gain of the choice, in points."""
    return percent(rows, "chosen") - percent(rows, "aligned")


def percent(rows: list[dict[str, Any]], key: str) -> float:
    """Return the mean of an accuracy over rows, in percent."""
    return 100 * sum(row[key] for row in rows) / len(rows)


def table_of(found: list[dict[str, Any]], severity: int) -> str:
    """Return the table of a severity, or of a camera's faults, as text: means over the draws."""
    wanted = (severity,) if severity == CAMERA else (0, severity)
    kinds = dict.fromkeys(row["kind"] for row in found if row["severity"] in wanted)
    rows = []
    for kind in kinds:
        own = [r for r in found if r["kind"] == kind and r["severity"] in wanted]
        means = [percent(own, key) for key in ("start", "aligned", "chosen")]
        filters = "; ".join(dict.fromkeys(", ".join(r["filters"]) or "none" for r in own))
        change = f"{change_of(own):+.1f}"
        rows.append([kind, *(f"{mean:.1f}" for mean in means), change, filters])
    first = "fault" if severity == CAMERA else "corruption"
    titles = [first, "start", "aligned", "behind the stage", "change", "filters"]
    return table(titles, rows, left=(first, "filters"))


def changes_of(found: list[dict[str, Any]]) -> str:
    """Return the changes by the choice, of each corruption and severity: means over the draws."""
    severities = sorted({row["severity"] for row in found} - {0}, reverse=True)
    kinds = dict.fromkeys(row["kind"] for row in found if row["severity"] > 0)
    cells = {
        (kind, s): change_of([r for r in found if (r["kind"], r["severity"]) == (kind, s)])
        for kind in kinds
        for s in severities
    }
    rows = [[kind, *(f"{cells[kind, s]:+.1f}" for s in severities)] for kind in kinds]
    means = [sum(cells[kind, s] for kind in kinds) / len(kinds) for s in severities]
    rows.append(["mean", *(f"{mean:+.1f}" for mean in means)])
    titles = ["corruption", *(f"severity {s}" for s in severities)]
    return table(titles, rows, left=("corruption",))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which cases are run."""
    parser.add_argument("--of", choices=("corruptions", "camera"), default="corruptions")
    parser.add_argument(
        "--model", default="cifar10_mcunet", help="a network for CIFAR-10, or fashion_mnist_dscnn"
    )
    parser.add_argument("--severities", type=int, nargs="+", default=[5, 4, 3, 2, 1])
    parser.add_argument("--draws", type=int, default=MOST_DRAWS)
    parser.add_argument("--threads", type=int, default=0, help="0 takes all")


def rows_by_name(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the function for each row."""
    cases = [("clean", 0)]
    cases += [(kind, s) for s in arguments.severities for kind in corruptions.names()]
    if arguments.of == "camera":
        cases = [(fault, CAMERA) for fault in FAULTS]
    return {
        f"{kind}-{severity}-{draw}": partial(
            row_of, kind, severity, draw, arguments.model, arguments.data, arguments.threads
        )
        for draw in range(arguments.draws)
        for kind, severity in cases
    }


def tables_of(found: list[dict[str, Any]]) -> str:
    """Return a table a severity, or that of a camera's faults."""
    severities = sorted({row["severity"] for row in found} - {0}, reverse=True)
    names = {CAMERA: "Faults of a camera"}
    parts = [f"{names.get(s, f'Severity {s}')}\n{table_of(found, s)}" for s in severities]
    if len(severities) > 1:
        parts.append(f"Changes by severity\n{changes_of(found)}")
    return "\n\n".join(parts)


def main() -> None:
    """Run the missing rows and print the tables."""
    run_benchmark(__doc__, rows_by_name, tables_of, add_arguments)


if __name__ == "__main__":
    main()
