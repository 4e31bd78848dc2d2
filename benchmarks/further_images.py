"""Models of a sweep on images that nothing was trained, measured or chosen on.

    python benchmarks/further_images.py OUT --data cifar-10-batches-bin

The first 1,000 test images leave an interval of six points. Of CIFAR-10's training images the
bundled models were trained on the first 45,000; the next 256 gave their clean statistics, and 3,000
more settled how alignment weighs channels. These are the rest, without those that a run has seen.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import pmt
from pmt import datasets
from pmt.cli.output import table
from pmt.datasets.picture import Fit, resized
from pmt.protocol import ImagePool, split, wilson_interval
from pmt.train.run_folder import RunFolder

FIRST = 48_256
# The seed of the corruption; those of a sweep are 0 and 1.
SEED = 2


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", help="folder of a sweep on CIFAR-10")
    parser.add_argument("--data", required=True, help="folder of CIFAR-10")
    options = parser.parse_args()
    train = datasets.load(options.data, split="train")
    test = datasets.load(options.data, split="test")
    right: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for path in sorted(Path(options.runs).glob("*/best.pmt")):
        _, source = RunFolder(path.parent).read_config()
        if source["protocol_name"] == "paper":
            raise SystemExit(f"{path.parent}: the paper's protocol adapts to test images")
        pool = ImagePool(
            clean=train, corruption=source["corruption"], severity=source["severity"], seed=SEED
        )
        chosen = further(source, pool, ImagePool(clean=test))
        model = pmt.load(path)
        data = pool.take(chosen)
        pixels = resized(data.images, Fit(model.input_shape[:2]))
        measured = model.evaluate(replace(data, images=pixels))
        key = (source["corruption"], source["method"])
        right[key].append((round(measured.accuracy * measured.n), measured.n))
    rows = [row(*key, found) for key, found in sorted(right.items())]
    print(table(["images", "method", "runs", "n", "accuracy", "seeds", "interval"], rows))


def further(source: dict[str, Any], pool: ImagePool, test: ImagePool) -> np.ndarray:
    """Return the indices of the images that a run has not seen."""
    parts = split(
        source["protocol_name"],
        pool,
        test,
        images=source["protocol_images"],
        held_out=source["protocol_held_out"],
        seed=source["protocol_seed"],
    )
    seen = np.concatenate([parts.train_indices, parts.held_out_indices])
    return np.setdiff1d(np.arange(FIRST, len(pool)), seen)


def row(corruption: str, method: str, found: list[tuple[int, int]]) -> list[str]:
    """Mean over the runs, their deviation, and Wilson's interval of the mean; percentages."""
    accuracies = np.array([100 * right / count for right, count in found])
    count = min(count for _, count in found)
    low, high = wilson_interval(round(accuracies.mean() / 100 * count), count)
    spread = f"{accuracies.std(ddof=1):.1f}" if len(found) > 1 else ""
    return [
        corruption,
        method,
        str(len(found)),
        f"{count:,}",
        f"{accuracies.mean():.1f}",
        spread,
        f"{100 * low:.1f}..{100 * high:.1f}",
    ]


if __name__ == "__main__":
    main()
