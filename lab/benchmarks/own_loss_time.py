"""Time of training steps with a Python callable as the loss, beside the built-in's.

    python benchmarks/own_loss_time.py cifar10_mcunet

The callable is the same loss in NumPy, and both run the same queries: the head, whose gradient is
exact with the built-in alone, is not among the layers. Seconds are those of the processor, so that
other processes do not count; steps of the two take turns, and the least of each counts.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import numpy.typing as npt

import pmt
from pmt import _core


def cross_entropy(
    logits: npt.NDArray[np.float32], labels: npt.NDArray[np.int64]
) -> npt.NDArray[np.float32]:
    """Return -log softmax at the labels, shape (queries, samples)."""
    shifted = logits - logits.max(axis=2, keepdims=True)
    right = np.take_along_axis(shifted, labels[None, :, None], axis=2)[..., 0]
    losses: npt.NDArray[np.float32] = np.log(np.exp(shifted).sum(axis=2)) - right
    return losses


def main() -> None:
    """Print both times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", help="model file, or the name of a bundled one")
    parser.add_argument("--layers", default="B2")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    for rule in ("pooled", "weight"):
        built_in, own = times(chosen, rule)
        print(
            f"{chosen.model} {chosen.layers}, {chosen.queries} queries, {chosen.batch} images, "
            f"rule {rule}: built-in {built_in:.3f} s, callable {own:.3f} s, "
            f"ratio {own / built_in:.2f}"
        )


def times(chosen: argparse.Namespace, rule: str) -> tuple[float, float]:
    """Return the seconds of a step with the built-in loss, and with the callable."""
    model = pmt.load(chosen.model)
    layers = model.select_layers(chosen.layers)
    rng = np.random.default_rng(0)
    images = rng.integers(-128, 128, (chosen.batch, *model.input_shape), np.int8)
    labels = rng.integers(0, model.classes, chosen.batch)
    trainers = []
    for function in (None, cross_entropy):
        options = pmt.TrainingOptions(queries=chosen.queries, rule=rule).to_core()
        options.loss = "cross_entropy" if function is None else "function"
        trainers.append(
            _core.Trainer(model.core, options, layers, chosen.batch, chosen.threads, loss=function)
        )
    least = [float("inf")] * 2
    for step in range(chosen.rounds):
        for which, trainer in enumerate(trainers):
            start = time.process_time()
            trainer.step(images, labels, step, 0.0)
            least[which] = min(least[which], time.process_time() - start)
    return least[0], least[1]


if __name__ == "__main__":
    main()
