"""A long training of a tiny network: its memory stays, and a resumed run ends with the same bytes.

`PYTHONPATH=tests/support scripts/soak.py [STEPS]` stops a run half-way, resumes it in another
process, and compares it with one that was never stopped. Linux only.
"""

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from networks import labels, pixels, smooth_network

import pmt
from pmt.datasets import Dataset

IMAGES = 500  # and steps of an epoch, whose records a run holds until it ends
BYTES_A_STEP = 64  # an epoch's record, and what allocators leave


def memory() -> int:
    """Return the resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def train(out: Path, steps: int, stop: int | None = None) -> tuple[bytes, int]:
    """Train for some steps; return the model's bytes and the memory that each step took."""
    model = smooth_network()
    data = Dataset(pixels(model, IMAGES), labels(model, IMAGES), ("a", "b", "c"), "random")
    seen: dict[int, int] = {}

    def watch(step: int, record: dict[str, Any]) -> None:
        if step >= steps // 4 and step % (steps // 20) == 0:
            seen[step] = memory()
        if step == stop:
            raise KeyboardInterrupt

    options = {"batch": 1, "queries": 2, "threads": 1, "keep_best": False}
    trainer = pmt.ZOTrainer(layers="all", preparation="none", epochs=-(-steps // IMAGES), **options)
    try:
        result = trainer.fit(model, data, out=out, progress=watch)
    except KeyboardInterrupt:
        return b"", 0
    first = min(seen)
    return result.model.image(), (seen[max(seen)] - seen[first]) // (max(seen) - first)


def main() -> int:
    """Print the figures; return whether one is out of its bounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", metavar="STEPS", type=int, nargs="?", default=100_000)
    steps = parser.parse_args().steps
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, multiprocessing.Pool(1, None, (), 1) as pool:
        folder = Path(scratch)
        whole, grown = pool.apply(train, (folder / "whole", steps))
        pool.apply(train, (folder / "cut", steps, steps // 2 + 1))
        resumed, _ = pool.apply(train, (folder / "cut", steps))
    same = resumed == whole
    print(
        f"{steps:,} steps: {grown} bytes a step, resumed {'the same' if same else 'other'} bytes, "
        f"{time.monotonic() - start:.0f} s"
    )
    return not same or grown > BYTES_A_STEP


if __name__ == "__main__":
    sys.exit(main())
