"""Accuracy of a model on corrupted test images before any adaptation, beside the paper's MCUNet.

    python benchmarks/no_adaptation.py cifar10_mcunet --data cifar-10-batches-bin

Severity 5, seed 0. The interval is Wilson's, 95 %. The paper tests on 900 images.
lab/pages/results.md shows the table of results/no-adaptation.json, which --results writes:

    python benchmarks/no_adaptation.py --table results/no-adaptation.json
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from kept_table import add_model_and_data, measure_or_show, parser_of

import pmt
from pmt import corruptions, datasets
from pmt.cli.output import table
from pmt.datasets import Dataset
from pmt.datasets.picture import Fit, resized
from pmt.protocol import wilson_interval
from pmt_lab.reproduce.published import published

SEVERITY = 5
# "No Adaptation" in the table of CIFAR-10-C accuracies.
PUBLISHED = published("cifar10c-accuracy")
PAPER = dict(zip(PUBLISHED["corruptions"], PUBLISHED["no_adaptation"], strict=True))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the accuracy under every corruption."""
    model, test = pmt.load(options.model), datasets.load(options.data, split="test")
    found = {"clean": accuracy(model, test)}
    for name in corruptions.names():
        found[name] = accuracy(model, corruptions.corrupt(test, name, SEVERITY, seed=0))
    settings = {"model": options.model, "test_images": len(test), "severity": SEVERITY}
    return {**settings, "accuracy": found}


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
    arguments = parser_of(__doc__)
    add_model_and_data(arguments)
    measure_or_show(arguments, measure, table_of)
