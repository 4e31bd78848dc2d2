r"""A learner on few labeled samples, a fifth of which choose its state.

    python benchmarks/few_samples.py

The bundled fashion_mnist_dscnn, with statistics of the last 256 bundled training images, takes 16
to 128 others in, clean or of a corruption of severity 5, in twelve draws, learns in all phases, and
commits what it has chosen. All images are bundled. It takes two minutes.
"""

from __future__ import annotations

import numpy as np

import pmt
from pmt import corruptions, datasets
from pmt.cli.output import table
from pmt.datasets import Dataset
from pmt.train.prepare import measure_statistics, with_statistics

KINDS = (
    *("clean", "gaussian_noise", "impulse_noise", "contrast", "defocus_blur", "brightness"),
    "jpeg_compression",
)
SIZES = (16, 32, 64, 128)
DRAWS, CLEAN = 12, 256


def seen(data: Dataset, kind: str, seed: int) -> Dataset:
    """Return images as a sensor sees them."""
    return data if kind == "clean" else corruptions.corrupt(data, kind, 5, seed=seed)


def change(model: pmt.Model, pool: Dataset, test: Dataset, size: int, draw: int) -> float:
    """Return the points that a learner gains on the test images by a number of samples."""
    chosen = np.random.default_rng(draw).choice(len(pool), size, replace=False)
    data = pool.subset(chosen)
    learner = pmt.Learner(model, samples=size)
    before = (learner.predict(test.images).labels == test.labels).mean()
    learner.observe(data.images, data.labels)
    if learner.learn() != "original":
        learner.commit()
    after = (learner.predict(test.images).labels == test.labels).mean()
    return 100 * float(after - before)


def main() -> None:
    """Print the table: mean over the draws, and the lowest of them."""
    train, test = datasets.bundled("train"), datasets.bundled("test")
    model = pmt.load("fashion_mnist_dscnn")
    model = with_statistics(model, measure_statistics(model, train.images[-CLEAN:]))
    rows = []
    for kind in KINDS:
        pool, tested = seen(train.take(len(train) - CLEAN), kind, 0), seen(test, kind, 1)
        cells = []
        for size in SIZES:
            changes = [change(model, pool, tested, size, draw) for draw in range(DRAWS)]
            cells.append(f"{np.mean(changes):+.1f} ({min(changes):+.1f})")
        start = (model.predict(tested.images) == tested.labels).mean()
        rows.append([kind, f"{100 * start:.1f}", *cells])
    print(table(["images", "start", *map(str, SIZES)], rows, left=("images",)))


if __name__ == "__main__":
    main()
