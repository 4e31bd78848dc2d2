r"""The exact head against scikit-learn's solutions on the same int8 features.

    pip install scikit-learn
    python benchmarks/exact_head.py

The bundled fashion_mnist_dscnn gets foggy and contrast-reduced clothes, with and without alignment,
and scikit-learn's digits, which it has never seen, turned, inverted and mirrored: 1,000 images to
train on, 1,000 (797 digits) to test. "same" is scikit-learn's solution in float64 of the problem
that pmt solved for a head without a past, "own" its logistic regression with a strength that three
folds choose.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

import pmt
from pmt import corruptions, datasets
from pmt.cli.output import table
from pmt.datasets import Dataset
from pmt.train.prepare import align, measure_statistics
from pmt.train.prepare.linear_head import solve_head

STRENGTHS = (100.0, 31.6, 10.0, 3.16, 1.0, 0.316, 0.1, 0.0316, 0.01)
TURNS: dict[str, Callable[[Any], Any]] = {
    "rotated": lambda images: np.rot90(images, 1, (1, 2)),
    "inverted": lambda images: 255 - images,
    "mirrored": lambda images: images[:, :, ::-1],
}
Pair = tuple[Dataset, Dataset]


def tasks() -> Iterator[tuple[str, pmt.Model, Pair]]:
    """Yield a name, a model, and images to train and test it on."""
    clean = datasets.bundled("train"), datasets.bundled("test")
    for kind in ("fog", "contrast"):
        pair = tuple(
            corruptions.corrupt(part, kind, 5, seed=seed) for seed, part in enumerate(clean)
        )
        model = pmt.load("fashion_mnist_dscnn")
        statistics = measure_statistics(model, clean[0].images)
        yield kind, model.copy(), pair
        align(model, pair[0].images, statistics)
        yield f"{kind}, aligned", model, pair
    for kind, turn in TURNS.items():
        yield f"digits {kind}", pmt.load("fashion_mnist_dscnn"), digits(clean, turn)


def digits(like: Pair, turn: Callable[[Any], Any]) -> Pair:
    """Return scikit-learn's digits in the size of the model's images."""
    from sklearn.datasets import load_digits

    data = load_digits()
    images = np.pad(np.kron(data.images, np.ones((3, 3))), ((0, 0), (2, 2), (2, 2))) * (255 / 16)
    order = np.random.default_rng(0).permutation(len(images))
    images = np.ascontiguousarray(turn(images.astype(np.uint8)[order, ..., None]))
    labels = data.target.astype(np.int64)[order]
    parts = (slice(0, 1000), slice(1000, None))
    train, test = (
        replace(one, images=images[part], labels=labels[part])
        for one, part in zip(like, parts, strict=True)
    )
    return train, test


def features_of(model: pmt.Model, data: Dataset) -> npt.NDArray[np.float64]:
    """Return the inputs of the last layer."""
    found = model.core.inputs(model.prepare(data.images), model.core.op_count - 1)
    return found.reshape(len(data), -1).astype(np.float64)


def theirs(model: pmt.Model, pair: Pair, strengths: tuple[float, ...]) -> float:
    """Return scikit-learn's accuracy, with the strength of these that three folds choose."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    known, new = (features_of(model, part) for part in pair)
    variances = known.var(axis=0)
    spreads = np.sqrt((variances + variances.mean()) / 2)

    def inputs(features: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.c_[(features - known.mean(axis=0)) / spreads, np.ones(len(features))]

    found = GridSearchCV(
        LogisticRegression(fit_intercept=False, max_iter=5000),
        {"C": [model.classes / (strength * len(known)) for strength in strengths]},
        cv=StratifiedKFold(3),
        scoring="neg_log_loss",
    ).fit(inputs(known), pair[0].labels)
    return float((found.predict(inputs(new)) == pair[1].labels).mean())


def row(name: str, model: pmt.Model, pair: Pair) -> list[str]:
    """Return the accuracies of a task in percent."""
    train, test = pair
    start, own = model.evaluate(test).accuracy, theirs(model, pair, STRENGTHS)
    solved, new = model.copy(), model.copy()
    last = model.core.op_count - 1
    new.core.set_parameters(last, 0 * model.core.weights(last), 0 * model.core.bias(last))
    solve_head(solved, train)
    strength = solve_head(new, train).strength
    same = theirs(model, pair, (strength,))
    accuracies = (start, solved.evaluate(test).accuracy, new.evaluate(test).accuracy, same, own)
    return [name, *(f"{100 * accuracy:.1f}" for accuracy in accuracies)]


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    titles = ["task", "start", "exact head", "new head", "same", "own"]
    print(table(titles, [row(*task) for task in tasks()], left=("task",)))


if __name__ == "__main__":
    main()
