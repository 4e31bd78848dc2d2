"""Accuracy of a model on corrupted test images before any adaptation, beside the paper's MCUNet.

    python benchmarks/no_adaptation.py cifar10_mcunet --data cifar-10-batches-bin

Severity 5, seed 0. The interval is Wilson's, 95 %. The paper tests on 900 images.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

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
_TABLE = published("cifar10c-accuracy")
PAPER = dict(zip(_TABLE["corruptions"], _TABLE["no_adaptation"], strict=True))


def main() -> None:
    """Print the table, and write the accuracies, 0..1, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", help="model file, or the name of a bundled one")
    parser.add_argument("--data", required=True, help="folder of CIFAR-10")
    parser.add_argument("--json", metavar="FILE", help="write the accuracies to this file")
    options = parser.parse_args()
    model, test = pmt.load(options.model), datasets.load(options.data, split="test")
    found = {"clean": accuracy(model, test)}
    for name in corruptions.names():
        found[name] = accuracy(model, corruptions.corrupt(test, name, SEVERITY, seed=0))
    rows = [row(name, share, len(test), PAPER.get(name)) for name, share in found.items()]
    titles = ["images", "accuracy", "interval", "paper", "difference"]
    print(f"{options.model}, {len(test):,} test images, severity {SEVERITY}")
    print(table(titles, rows, left=["images"]))
    if options.json:
        kept = {**origin(), "model": options.model, "test_images": len(test), "severity": SEVERITY}
        atomic_file.write_text(options.json, spread_json({**kept, "accuracy": found}, 2) + "\n")


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
