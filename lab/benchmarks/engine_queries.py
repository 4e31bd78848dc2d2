"""Time a query of pmt.Engine against one of the trainer, on the same layers, images and directions.

    python benchmarks/engine_queries.py [MODEL] [--layers B2] [--queries 100] [--threads 1]

Both move weights and biases by random signs. The trainer draws its signs, as in training, and sums
up one layer's gradient; the engine is given them. Time is that of the CPU, of all threads.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import pmt
from pmt import _core
from pmt_lab.benchmark.forward import random_images

BATCH, REPEAT = 25, 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", default="cifar10_mcunet")
    parser.add_argument("--layers", default="B2")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    model = pmt.load(arguments.model)
    engine = pmt.Engine(model, arguments.layers, threads=arguments.threads)
    rng = np.random.default_rng(0)
    images, labels = random_images(model, BATCH), rng.integers(0, model.classes, BATCH)
    signs = {
        layer: (
            rng.choice(
                np.array([-1, 1], np.int8), (arguments.queries, *engine.weights(layer).shape)
            ),
            rng.choice(np.array([-1, 1], np.int32), (arguments.queries, *engine.bias(layer).shape)),
        )
        for layer in engine.layers
    }
    options = pmt.TrainingOptions(
        layers=arguments.layers, queries=arguments.queries, batch=BATCH, rule="weight"
    )
    layers = model.select_layers(options.layers)
    trainer = _core.Trainer(model.core, options.to_core(), layers, BATCH, engine.threads)

    def of_engine() -> None:
        for layer, (weights, bias) in signs.items():
            engine.losses(images, labels, layer, weights, bias=bias)

    queries = arguments.queries * BATCH * len(layers)
    seconds = least([lambda: trainer.estimate(images, labels, 0, 0), of_engine])
    for name, taken in zip(("trainer", "engine"), seconds, strict=True):
        print(f"{name:8} {taken / queries * 1e6:8.1f} us of CPU a query")
    print(f"{'ratio':8} {seconds[1] / seconds[0]:8.2f}")


def least(calls: list[Callable[[], object]]) -> list[float]:
    """Return the least CPU seconds of each call, of all its threads; they take turns."""
    taken = [float("inf")] * len(calls)
    for _ in range(REPEAT):
        for i, call in enumerate(calls):
            start = time.process_time()
            call()
            taken[i] = min(taken[i], time.process_time() - start)
    return taken


if __name__ == "__main__":
    main()
