"""Accuracy of a model on corrupted test images before any adaptation, beside the paper's MCUNet.

    python benchmarks/no_adaptation.py cifar10_mcunet --data cifar-10-batches-bin

Severity 5, seed 0. The interval is Wilson's, 95 %. The paper tests on 900 images.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import pmt
from pmt import corruptions, datasets
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
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", help="model file, or the name of a bundled one")
    parser.add_argument("--data", required=True, help="folder of CIFAR-10")
    options = parser.parse_args()
    model, test = pmt.load(options.model), datasets.load(options.data, split="test")
    rows = [row("clean", accuracy(model, test), len(test), None)]
    for name in corruptions.names():
        corrupted = corruptions.corrupt(test, name, SEVERITY, seed=0)
        rows.append(row(name, accuracy(model, corrupted), len(test), PAPER.get(name)))
    titles = ["images", "accuracy", "interval", "paper", "difference"]
    print(f"{options.model}, {len(test):,} test images, severity {SEVERITY}")
    print(table(titles, rows, left=["images"]))


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
