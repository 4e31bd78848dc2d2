"""Measure how often a selection on few held-out images is right, by loss and by accuracy.

    python benchmarks/selection_noise.py fashion_mnist_dscnn --data bundled

Each block is trained on trial once a seed, and scored on all images that were not trained on, test
images too: this is no adaptation, so nothing is reported on them. Then selections on random subsets
of them are replayed, and compared with what all of them choose.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import pmt
from pmt import corruptions
from pmt.cli.output import table
from pmt.protocol import balanced_order
from pmt.protocol.data_source import DataSource
from pmt.train.choose import default_candidates

HELD_OUT = (50, 100, 200, 400)
# Weights or nodes, at steps that make differences large.
RULE: dict[str, Any] = {
    "rule": "by_dimension",
    "batch": 50,
    "mu_node": 4,
    "learning_rate": 0.5,
    "head_rate": 1.0,
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", help="model file, or the name of a bundled one")
    parser.add_argument("--data", required=True, help="data set, or the word 'bundled'")
    parser.add_argument("--corruptions", default="gaussian_noise,contrast,defocus_blur")
    parser.add_argument("--train", type=int, default=500, help="training images")
    parser.add_argument("--pool", type=int, default=1500, help="images to choose on, at most")
    parser.add_argument("--queries", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--replays", type=int, default=2000)
    options = parser.parse_args()
    model = pmt.load(options.model)
    rows = []
    for name in options.corruptions.split(","):
        losses, errors = scores(model, options, name)
        rows += [row(name, count, losses, errors, options.replays) for count in HELD_OUT]
    titles = [
        "corruption", "held out", "se of accuracy", "se of a difference", "right by accuracy",
        "right by loss", "regret by accuracy", "regret by loss",
    ]  # fmt: skip
    blocks = ", ".join(default_candidates(model))
    print(f"{options.model}: {blocks}; {options.seeds} seeds, {losses.shape[2]} images in the pool")
    print(table(titles, rows, left=["corruption"]))


def scores(
    model: pmt.Model, options: argparse.Namespace, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Losses and errors after the trial run, each (seeds, blocks, images)."""
    assert name in corruptions.names()
    source = DataSource(options.data, name, 5)
    train, test = source.pool("train", model), source.pool("test", model)
    order = balanced_order(train.labels, 0)
    data = train.take(order[: options.train])
    rest = order[options.train : options.train + options.pool // 3]
    others = balanced_order(test.labels, 0)[: options.pool - len(rest)]
    pools = [train.take(rest), test.take(others)]
    losses, errors = [], []
    for seed in range(1, options.seeds + 1):
        for block in default_candidates(model):
            trained = model.copy()
            given = {"layers": block, "epochs": 1, "queries": options.queries, "seed": seed}
            trainer = pmt.ZOTrainer(**given, **RULE)
            trainer.fit(trained, data, progress=False)
            parts = [trained.score_images(pool) for pool in pools]
            losses.append(np.concatenate([part.losses for part in parts]))
            errors.append(1.0 - np.concatenate([part.correct for part in parts]))
    shape = (options.seeds, -1, len(losses[0]))
    return np.reshape(losses, shape), np.reshape(errors, shape)


def row(name: str, count: int, losses: np.ndarray, errors: np.ndarray, replays: int) -> list[str]:
    """Replay selections on ``count`` images; the best is what the whole pool's accuracy says."""
    rng = np.random.default_rng(0)
    means = errors.mean(axis=2)
    right, regret = {"loss": 0, "accuracy": 0}, {"loss": 0.0, "accuracy": 0.0}
    single, paired = [], []
    for _ in range(replays):
        seed = rng.integers(len(errors))
        chosen = rng.choice(errors.shape[2], count, replace=False)
        for criterion, values in (("loss", losses), ("accuracy", errors)):
            block = int(values[seed][:, chosen].mean(axis=1).argmin())
            right[criterion] += block == means[seed].argmin()
            regret[criterion] += means[seed][block] - means[seed].min()
        best, second = np.argsort(means[seed])[:2]
        sample = errors[seed][:, chosen].mean(axis=1)
        single.append(sample[best] - means[seed][best])
        paired.append(sample[second] - sample[best] - means[seed][second] + means[seed][best])
    shares = [f"{100 * right[key] / replays:.0f} %" for key in ("accuracy", "loss")]
    points = [f"{100 * regret[key] / replays:.2f}" for key in ("accuracy", "loss")]
    spread = [f"{100 * float(np.std(values)):.1f}" for values in (single, paired)]
    return [name, str(count), *spread, *shares, *points]


if __name__ == "__main__":
    main()
