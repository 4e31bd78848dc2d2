"""Accuracy of a model on corrupted test images before any adaptation, beside the paper's MCUNet.

    python benchmarks/no_adaptation.py cifar10_mcunet --data cifar-10-batches-bin

Severity 5, seed 0. The interval is Wilson's, 95 %. The paper tests on 900 images.
docs/lab/results.md shows the table of docs/lab/results/no-adaptation.json, which --results writes:

    python benchmarks/no_adaptation.py --table docs/lab/results/no-adaptation.json
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pmt
from pmt import corruptions, datasets
from pmt._util import atomic_file
from pmt._util.origin import origin
from pmt._util.spread_json import spread_json
from pmt.cli.output import table
from pmt.datasets import Dataset
from pmt.datasets.picture import Fit, resized
from pmt.protocol import wilson_interval
from pmt.research.reproduce.published import published

SEVERITY = 5
# "No Adaptation" in the table of CIFAR-10-C accuracies.
PUBLISHED = published("cifar10c-accuracy")
PAPER = dict(zip(PUBLISHED["corruptions"], PUBLISHED["no_adaptation"], strict=True))


def main() -> None:
    """Print the table, of new accuracies or of those of a file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", nargs="?", help="model file, or the name of a bundled one")
    parser.add_argument("--data", help="folder of CIFAR-10")
    parser.add_argument("--results", help="file that gets the accuracies, 0..1, as JSON")
    parser.add_argument("--table", type=Path, help="run nothing; the table of such a file")
    options = parser.parse_args()
    if options.table is not None:
        print(table_of(json.loads(options.table.read_text())))
        return
    if options.model is None or options.data is None:
        parser.error("MODEL and --data are needed, or --table alone")
    model, test = pmt.load(options.model), datasets.load(options.data, split="test")
    found = {"clean": accuracy(model, test)}
    for name in corruptions.names():
        found[name] = accuracy(model, corruptions.corrupt(test, name, SEVERITY, seed=0))
    kept = {**origin(), "model": options.model, "test_images": len(test), "severity": SEVERITY}
    kept["accuracy"] = found
    if options.results:
        atomic_file.write_text(options.results, spread_json(kept, 2) + "\n")
    print(table_of(kept))


def table_of(kept: dict[str, Any]) -> str:
    """Return the table of kept accuracies."""
    count = kept["test_images"]
    rows = [row(name, share, count, PAPER.get(name)) for name, share in kept["accuracy"].items()]
    titles = ["images", "accuracy", "interval", "paper", "difference"]
    title = f"{kept['model']}, {count:,} test images, severity {kept['severity']}; in %"
    return f"{title}\n{table(titles, rows, left=['images'])}"


def accuracy(model: pmt.Model, data: Dataset) -> float:
    """Upscale to the model's input and classify."""
    images = resized(data.images, Fit(model.input_shape[:2]))
    return model.evaluate(replace(data, images=images)).accuracy


def row(name: str, share: float, count: int, paper: int | None) -> list[str]:
    """Percentages; the difference is in points."""
    low, high = wilson_interval(round(share * count), count)
    beside = ["", ""] if paper is None else [str(paper), f"{100 * share - paper:+.1f}"]
    return [name, f"{100 * share:.1f}", f"{100 * low:.1f}..{100 * high:.1f}", *beside]


if __name__ == "__main__":
    main()
