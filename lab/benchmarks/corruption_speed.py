"""Measure how many images a second, on one core, each corruption makes.

    python benchmarks/corruption_speed.py [--data DIR] [--side 32] [--constants cifar10]

Prints a Markdown table, severities 1, 3 and 5 and the slowest of the five. Frost is left out where
its overlays are not found.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import pmt
from pmt.corruptions import SEVERITIES, corrupt, names

SHOWN = (1, 3, 5)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="data set folder; without it smooth random images are made")
    parser.add_argument("--side", type=int, default=32, help="of the made images, in pixels")
    parser.add_argument("--images", type=int, default=500, help="images a measurement")
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many counts")
    parser.add_argument("--constants", default="cifar10", choices=("cifar10", "imagenet"))
    parser.add_argument("--overlays", help="folder of frost's overlays (default: $PMT_DATA/frost)")
    return parser.parse_args()


def images(data: str | None, count: int, side: int) -> np.ndarray:
    if data:
        return pmt.datasets.load(data, split="test").take(count).images
    coarse = np.random.default_rng(0).integers(0, 256, (count, 9, 9, 3))
    places = np.linspace(0, 8, side)
    low = places.astype(int).clip(max=7)
    share = places - low
    rows = coarse[:, low] * (1 - share)[:, None, None] + coarse[:, low + 1] * share[:, None, None]
    columns = rows[:, :, low] * (1 - share)[:, None] + rows[:, :, low + 1] * share[:, None]
    return columns.astype(np.uint8)


def images_a_second(a: argparse.Namespace, pixels: np.ndarray, name: str, severity: int) -> float:
    """Measure in processor time, so that other loads of the machine count little."""
    seconds = []
    for _ in range(a.repeats):
        start = time.process_time()
        corrupt(pixels, name, severity, constants=a.constants, overlays=a.overlays)
        seconds.append(time.process_time() - start)
    return len(pixels) / min(seconds)


def main() -> None:
    a = arguments()
    pixels = images(a.data, a.images, a.side)
    height, width, channels = pixels.shape[1:]
    print(f"{len(pixels)} images of {height}x{width}x{channels}, constants of {a.constants}\n")
    print("| corruption |" + "".join(f" severity {each} |" for each in SHOWN) + " slowest |")
    print("| --- |" + " --- |" * (len(SHOWN) + 1))
    for name in names():
        try:
            speeds = {each: images_a_second(a, pixels, name, each) for each in SEVERITIES}
        except FileNotFoundError as error:
            print(f"{name} left out: {error}")
            continue
        row = "".join(f" {speeds[each]:,.0f} |" for each in SHOWN)
        print(f"| {name} |{row} {min(speeds.values()):,.0f} |", flush=True)


if __name__ == "__main__":
    main()
