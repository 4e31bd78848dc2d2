"""Measure the accuracy of alignment alone on corrupted images, beside the paper's adapted MCUNet.

    python benchmarks/alignment.py cifar10_mcunet --data cifar-10-batches-bin

The model holds statistics of clean images. Severity 5. For each seed other images adapt (from the
5,000 of CIFAR-10's training images that the bundled models were not trained on) and another noise
falls on the test images. No labels are used.
lab/pages/results.md shows the table of results/alignment.json, which --results writes:

    python benchmarks/alignment.py --table results/alignment.json
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
from kept_table import add_model_and_data, measure_or_show, parser_of
from no_adaptation import PAPER, PUBLISHED, SEVERITY, accuracy

import pmt
from pmt import corruptions, datasets
from pmt.cli.output import table
from pmt.datasets import Dataset
from pmt.datasets.picture import Fit, resized
from pmt.train.prepare import align

TRAINED_IMAGES = 45_000
STATES = ("before", "channels", "windows", "reliability")
# "BP-free (Ours)", INT8, in the table of CIFAR-10-C accuracies: 2e7 perturbed forwards.
PAPER_BP_FREE = dict(zip(PUBLISHED["corruptions"], PUBLISHED["bp_free"], strict=True))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return each seed's accuracies under every corruption."""
    whole = datasets.load(options.data, split="train")
    fresh = whole.subset(np.arange(TRAINED_IMAGES, len(whole)))
    test = datasets.load(options.data, split="test")
    accuracies = {}
    for name in ("clean", *corruptions.names()):
        seeds = range(options.seeds)
        found = [aligned(options.model, name, fresh, test, options.images, s) for s in seeds]
        accuracies[name] = dict(zip(STATES, np.transpose(found).tolist(), strict=True))
        print("  ".join(row(name, accuracies[name])), file=sys.stderr, flush=True)
    settings = {"model": options.model, "test_images": len(test), "severity": SEVERITY}
    return {**settings, "images": options.images, "seeds": options.seeds, "accuracy": accuracies}


def table_of(kept: dict[str, Any]) -> str:
    """Return the table of kept accuracies."""
    title = (
        f"{kept['model']}, {kept['test_images']:,} test images, severity {kept['severity']}, "
        f"aligned to {kept['images']} images without labels, {kept['seeds']} seeds; accuracy in %"
    )
    rows = [row(name, found) for name, found in kept["accuracy"].items()]
    titles = ["images", *STATES, "range", "paper before", "paper adapted"]
    return f"{title}\n{table(titles, rows, left=['images'])}"


def aligned(
    name: str, corruption: str, fresh: Dataset, test: Dataset, images: int, seed: int
) -> list[float]:
    """Return the accuracy before, with channels aligned, with windows, with reliability too."""
    chosen = np.random.default_rng(seed).permutation(len(fresh))[:images]
    adapting, testing = fresh.subset(np.sort(chosen)), test
    if corruption != "clean":
        adapting = corruptions.corrupt(adapting, corruption, SEVERITY, seed=2 * seed)
        testing = corruptions.corrupt(test, corruption, SEVERITY, seed=2 * seed + 1)
    found = [accuracy(pmt.load(name), testing)]
    for windows, reliability in ((False, False), (True, False), (True, True)):
        model = pmt.load(name)
        pixels = resized(adapting.images, Fit(model.input_shape[:2]))
        align(model, pixels, windows=windows, reliability=reliability)
        found.append(accuracy(model, testing))
    return found


def row(name: str, found: dict[str, list[float]]) -> list[str]:
    """Means over the seeds, and the range of the last; percentages."""
    means = [f"{100 * np.mean(found[state]):.1f}" for state in STATES]
    low, high = 100 * min(found[STATES[-1]]), 100 * max(found[STATES[-1]])
    paper = [str(PAPER.get(name, "")), f"{PAPER_BP_FREE[name]:.1f}" if name in PAPER else ""]
    return [name, *means, f"{low:.1f}..{high:.1f}", *paper]


if __name__ == "__main__":
    arguments = parser_of(__doc__)
    add_model_and_data(arguments)
    arguments.add_argument("--images", type=int, default=256, help="to align to (default: 256)")
    arguments.add_argument("--seeds", type=int, default=3, help="repetitions (default: 3)")
    measure_or_show(arguments, measure, table_of)
