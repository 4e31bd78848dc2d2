"""Alignment to images of a few classes alone, and a learner that holds some of them out.

python lab/benchmarks/class_mix.py cifar-10-batches-bin
"""

import argparse

import numpy as np

import pmt
from pmt import corruptions, datasets
from pmt_lab.cli.common import table

KINDS = ("clean", "gaussian_noise", "defocus_blur", "fog", "contrast")
CLASSES = (10, 5, 3, 2, 1)


def main() -> None:
    """Print a table: a line for each corruption and number of classes, means over draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="CIFAR-10; its first 1,000 test images are taken")
    parser.add_argument("--model", default="cifar10_mcunet")
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--draws", type=int, default=3)
    given = parser.parse_args()
    model, clean = pmt.load(given.model), datasets.load(given.data, "test", size=128).take(1000)
    rows = []
    for kind in KINDS:
        data = clean if kind == "clean" else corruptions.corrupt(clean, kind, 5, seed=0)
        pool, test = data.subset(range(500)), data.subset(range(500, 1000))
        before = model.predict(test.images) == test.labels
        for count in CLASSES:
            found = [measure(model, pool, test, count, given.images, d) for d in range(given.draws)]
            seen = [[right[of].mean() for right in (before, *states)] for *states, of in found]
            after = np.mean([aligned.mean() for aligned, *_ in found])
            lowest = np.min(np.subtract(seen, np.array(seen)[:, :1]), axis=0)[1:]
            figures = (before.mean(), after, *np.mean(seen, axis=0), *lowest)
            rows.append((kind, str(count), *(f"{100 * figure:.1f}" for figure in figures)))
            print(*rows[-1], flush=True)
    heads = ["images", "classes", "start", "aligned", "seen: start", "aligned", "learner"]
    heads += ["aligned, worst", "learner, worst"]
    print(table(heads, rows, left=["images"]))


def measure(model, pool, test, count, images, draw):
    """Return which test images both get right, and which are of the classes that were seen."""
    random = np.random.default_rng([count, draw])
    classes = random.permutation(len(pool.class_names))[:count]
    chosen = random.permutation(np.flatnonzero(np.isin(pool.labels, classes)))[:images]
    aligned = model.copy()
    pmt.align(aligned, pool.images[chosen])
    learner = pmt.Learner(model, samples=images, keeps_activations=True)
    learner.observe(pool.images[chosen], pool.labels[chosen])
    if learner.learn("align") != "original":
        learner.commit()
    labels = (aligned.predict(test.images), learner.predict(test.images).labels)
    return *(found == test.labels for found in labels), np.isin(test.labels, classes)


if __name__ == "__main__":
    main()
