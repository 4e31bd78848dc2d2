"""A learner whose labels name a few classes alone.

python lab/benchmarks/missing_classes.py
"""

import argparse

import numpy as np

import pmt
from pmt_lab.cli.common import table

KINDS = ("clean", "gaussian_noise", "impulse_noise", "contrast", "motion_blur")
CLASSES = (10, 5, 3, 2, 1)


def main() -> None:
    """Print a table: a line for each number of classes and of images, means over draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="fashion_mnist_dscnn")
    parser.add_argument("--draws", type=int, default=5, help="of classes and images, a corruption")
    given = parser.parse_args()
    train, test = pmt.datasets.bundled("train"), pmt.datasets.bundled("test")
    model = pmt.statistics(pmt.load(given.model), train.images[:256])
    corrupted = {kind: (degrade(train, kind), degrade(test, kind)) for kind in KINDS}
    rows = []
    for count in CLASSES:
        for images in (30, 100):
            found = [
                change(model, *data, count, images, draw)
                for data in corrupted.values()
                for draw in range(given.draws)
            ]
            figures = (*np.mean(found, axis=0), *np.min(found, axis=0))
            order = [0, 2, 1, 3]  # the mean and the lowest of all, and of the classes seen
            rows.append((str(count), str(images), *(f"{100 * figures[i]:.1f}" for i in order)))
            print(*rows[-1], flush=True)
    heads = ["classes", "images", "all", "lowest", "seen", "seen, lowest"]
    print(table(heads, rows, left=[]))


def degrade(data, kind):
    """Return the corrupted images; clean ones as they are."""
    return data if kind == "clean" else pmt.corruptions.corrupt(data, kind, 5, seed=0)


def change(model, pool, test, count, images, draw):
    """Return the changes of accuracy: on all test images, and on those of classes that were seen."""
    random = np.random.default_rng([count, draw, images])
    classes = random.permutation(len(pool.class_names))[:count]
    chosen = random.permutation(np.flatnonzero(np.isin(pool.labels, classes)))[:images]
    learner = pmt.Learner(model, samples=images)
    learner.observe(pool.images[chosen], pool.labels[chosen])
    right = [learner.predict(test.images).labels == test.labels]
    if learner.learn() != "original":
        learner.commit()
    right.append(learner.predict(test.images).labels == test.labels)
    seen = np.isin(test.labels, classes)
    return right[1].mean() - right[0].mean(), right[1][seen].mean() - right[0][seen].mean()


if __name__ == "__main__":
    main()
