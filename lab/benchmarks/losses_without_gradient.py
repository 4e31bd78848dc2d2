r"""Training by losses that back-propagation cannot use, or that need no labels, on shifted images.

    python benchmarks/losses_without_gradient.py

The bundled network and images, corrupted; test images have noise of their own. Without alignment
and exact head, with the default's options and three epochs over 1,000 images: what is gained,
perturbed forwards gain by this loss alone. The model of the last step is tested. `entropy` sees no
label. lab/pages/results.md shows the table of results/losses-without-gradient.json, which
--results writes:

    python benchmarks/losses_without_gradient.py --table \
        results/losses-without-gradient.json
"""

from __future__ import annotations

import argparse
from typing import Any

from kept_table import measure_or_show, parser_of

import pmt
from pmt import corruptions, datasets
from pmt.cli.output import table
from pmt.datasets import Dataset

IMAGES = 1000
EPOCHS = 3
SEVERITY = 5
SEEDS = (1, 2, 3)
LOSSES: dict[str, dict[str, Any]] = {
    "entropy": {"loss": "entropy"},
    "entropy, diversity 1": {"loss": "entropy", "diversity": 1.0},
    "zero_one": {"loss": "zero_one"},
    "cross_entropy": {"loss": "cross_entropy"},
}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return each seed's accuracies under every corruption."""
    found = {name: accuracies(name) for name in options.corruptions.split(",")}
    settings = {"epochs": EPOCHS, "severity": SEVERITY, "seeds": len(SEEDS)}
    return {**settings, "accuracy": found}


def table_of(kept: dict[str, Any]) -> str:
    """Return the table of kept accuracies, a row for each corruption."""
    rows = [[name, *map(cell, one.values())] for name, one in kept["accuracy"].items()]
    losses = list(next(iter(kept["accuracy"].values())))
    severity, seeds = kept["severity"], kept["seeds"]
    title = f"Accuracy in %, mean of {seeds} seeds and their range, severity {severity}"
    return f"{title}\n{table(['images', *losses], rows, left=['images'])}"


def accuracies(name: str) -> dict[str, list[float]]:
    """Return the accuracy of each seed before training, and after it by each loss."""
    splits = {seed: corrupted(name, seed) for seed in SEEDS}
    start = [pmt.load("fashion_mnist_dscnn").evaluate(test).accuracy for _, test in splits.values()]
    after = {
        loss: [trained(*split, seed, options) for seed, split in splits.items()]
        for loss, options in LOSSES.items()
    }
    return {"start": start, **after}


def corrupted(name: str, seed: int) -> tuple[Dataset, Dataset]:
    """Return images to train and to test on, with different noise."""
    train = datasets.bundled("train").shuffled(seed).take(IMAGES)
    test = datasets.bundled("test")
    return (
        corruptions.corrupt(train, name, SEVERITY, seed=2 * seed),
        corruptions.corrupt(test, name, SEVERITY, seed=2 * seed + 1),
    )


def trained(train: Dataset, test: Dataset, seed: int, options: dict[str, Any]) -> float:
    """Return the accuracy on the test images after training."""
    model = pmt.load("fashion_mnist_dscnn")
    if options["loss"] == "entropy":
        train = Dataset.unlabeled(train.images)
    trainer = pmt.ZOTrainer(
        preparation="none", epochs=EPOCHS, seed=seed, keep_best=False, **options
    )
    trainer.fit(model, train, progress=False)
    return model.evaluate(test).accuracy


def cell(accuracies: list[float]) -> str:
    """Return the mean and the range, in percent."""
    low, high = 100 * min(accuracies), 100 * max(accuracies)
    return f"{100 * sum(accuracies) / len(accuracies):.1f} ({low:.1f}..{high:.1f})"


if __name__ == "__main__":
    arguments = parser_of(__doc__)
    names = "gaussian_noise,contrast"
    arguments.add_argument("--corruptions", default=names, help="names, by commas")
    measure_or_show(arguments, measure, table_of, levels=3)
