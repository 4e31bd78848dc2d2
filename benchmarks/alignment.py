"""Measure the accuracy of alignment alone on corrupted images, beside the paper's adapted MCUNet.

    python benchmarks/alignment.py cifar10_mcunet --data cifar-10-batches-bin

Severity 5. For each seed other images adapt (from the 5,000 of CIFAR-10's training images that the
bundled models were not trained on) and another noise falls on the test images. No labels are used.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from no_adaptation import PAPER, SEVERITY, accuracy

import pmt
from pmt import corruptions, datasets
from pmt._util import atomic_file
from pmt._util.origin import origin
from pmt._util.spread_json import spread_json
from pmt.cli.output import table
from pmt.datasets import Dataset
from pmt.datasets.picture import Fit, resized
from pmt.train.alignment import align

TRAINED_IMAGES = 45_000
STATES = ("before", "channels", "windows", "reliability")
# "BP-free (Ours)", INT8, in the table of CIFAR-10-C accuracies: 2e7 perturbed forwards.
PAPER_BP_FREE = {
    "gaussian_noise": 66.78,
    "shot_noise": 66.22,
    "impulse_noise": 61.00,
    "speckle_noise": 67.33,
    "gaussian_blur": 80.11,
    "defocus_blur": 83.66,
    "motion_blur": 81.00,
    "zoom_blur": 86.33,
    "fog": 78.33,
    "brightness": 88.22,
    "contrast": 69.78,
    "elastic_transform": 79.56,
}


def main() -> None:
    """Print the table, and write the accuracies, 0..1, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", help="model file that holds clean statistics, or a bundled one")
    parser.add_argument("--data", required=True, help="folder of CIFAR-10")
    parser.add_argument("--images", type=int, default=256, help="images to align to (default: 256)")
    parser.add_argument("--seeds", type=int, default=3, help="repetitions (default: 3)")
    parser.add_argument("--json", metavar="FILE", help="write each seed's accuracies to this file")
    options = parser.parse_args()
    whole = datasets.load(options.data, split="train")
    fresh = whole.subset(np.arange(TRAINED_IMAGES, len(whole)))
    test = datasets.load(options.data, split="test")
    print(
        f"{options.model}, {len(test):,} test images, severity {SEVERITY}, aligned to "
        f"{options.images} images without labels, {options.seeds} seeds; accuracy in %"
    )
    rows, accuracies = [], {}
    for name in ("clean", *corruptions.names()):
        seeds = range(options.seeds)
        found = [aligned(options.model, name, fresh, test, options.images, s) for s in seeds]
        accuracies[name] = dict(zip(STATES, np.transpose(found).tolist(), strict=True))
        rows.append(row(name, np.array(found)))
        print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    titles = ["images", *STATES, "range", "paper before", "paper adapted"]
    print(table(titles, rows, left=["images"]))
    if options.json:
        kept = {**origin(), "model": options.model, "test_images": len(test), "severity": SEVERITY}
        kept |= {"images": options.images, "seeds": options.seeds, "accuracy": accuracies}
        atomic_file.write_text(options.json, spread_json(kept, 2) + "\n")


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


def row(name: str, found: np.ndarray) -> list[str]:
    """Means over the seeds, and the range of the last; percentages."""
    means = [f"{100 * mean:.1f}" for mean in found.mean(0)]
    low, high = 100 * found[:, -1].min(), 100 * found[:, -1].max()
    paper = [str(PAPER.get(name, "")), f"{PAPER_BP_FREE[name]:.1f}" if name in PAPER else ""]
    return [
        name,
        *means,
        f"{low:.1f}..{high:.1f}",
        *paper,
    ]


if __name__ == "__main__":
    main()
