r"""Train layers of a network by two engines, from the same seed, and say how far they agree.

    python benchmarks/second_engine.py fashion_mnist_dscnn --data bundled --layers B1
    python benchmarks/second_engine.py resnet8_cifar10_int8.tflite --data cifar-10-batches-bin \\
        --layers dense --steps 4

The core's engine and TensorFlow Lite Micro take the same steps of weight perturbation on the same
corrupted images, by the losses of their int8 logits alone. Tables in Markdown.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import pmt
from pmt.baselines.engines import CoreEngine, Engine, EngineTrainer, TFLiteMicroEngine
from pmt.protocol import wilson_interval
from pmt.protocol.data_source import DataSource
from pmt.train.schedule import Schedule


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help=".tflite file, or the name of a bundled model")
    parser.add_argument("--data", required=True, help="data set folder, or bundled")
    parser.add_argument("--corruption", default="gaussian_noise")
    parser.add_argument("--severity", type=int, default=5)
    parser.add_argument("--layers", default="all")
    parser.add_argument("--images", type=int, default=100, help="training images")
    parser.add_argument("--test", type=int, default=200, help="test images")
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--learning-rate", type=float, default=0.5)
    parser.add_argument("--mu", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


class Recorded:
    """An engine that keeps every loss it gives, and the time that takes."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.model, self.int8_logits = engine.model, engine.int8_logits
        self.parameters, self.set_parameters = engine.parameters, engine.set_parameters
        self.batches: list[np.ndarray] = []
        self.last = 0  # where those of the step begin that is looked at next
        self.seconds = 0.0

    def losses(self, images: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, int]:
        """Run the engine."""
        start = time.perf_counter()
        found, correct = self.engine.losses(images, labels)
        self.seconds += time.perf_counter() - start
        self.batches.append(found)
        return found, correct


def main() -> None:
    """Train by both engines, then measure both networks by both."""
    a = arguments()
    source = DataSource(a.data, a.corruption, a.severity)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(a.model)
        if file.suffix != ".tflite":
            file = Path(folder) / "network.tflite"
            pmt.load(a.model).save(file)
        micro = TFLiteMicroEngine(file)
    core = CoreEngine(micro.model.copy(), int8_logits=True, threads=1)
    train = source.load("train", micro.model, limit=a.images)
    test = source.load("test", micro.model, limit=a.test)
    images = micro.model.prepare(test.images)
    compare_logits(core, micro, images)

    options = pmt.TrainingOptions(
        gradient_norm_scaling="none",
        preparation="none",
        layers=a.layers,
        rule="weight",
        sharing="batch",
        int8_logits=True,
        batch=a.batch,
        queries=a.queries,
        mu_weight=a.mu,
        learning_rate=a.learning_rate,
        epochs=-(-a.steps // (len(train) // a.batch)),
        seed=a.seed,
    )
    schedule = Schedule(options, len(train))
    untrained = core.model.copy()
    recorded = Recorded(core), Recorded(micro)
    trainers = [EngineTrainer(engine, options) for engine in recorded]
    print("\n| step | loss, core | loss, TFLM | queries' differences correlate |")
    print("| --- | --- | --- | --- |")
    for step in range(a.steps):
        rows = schedule.indices(step)
        batch = micro.model.prepare(train.images[rows]), train.labels[rows]
        losses = [t.step(*batch, step, schedule.learning_rate(step))["loss"] for t in trainers]
        print(f"| {step} | {losses[0]:.4f} | {losses[1]:.4f} | {correlation(recorded):.3f} |")
    print("\n| trained by | run by | loss | accuracy | 95 % |")
    print("| --- | --- | --- | --- | --- |")
    trained = {"none": untrained, "core": core.model, "TFLM": micro.to_model()}
    for name, model in trained.items():
        for layer in model.layers:
            parameters = model.core.weights(layer.index), model.core.bias(layer.index)
            micro.set_parameters(layer.index, *parameters)
        for engine, runner in (("core", CoreEngine(model, int8_logits=True)), ("TFLM", micro)):
            found, correct = runner.losses(images, test.labels)
            low, high = wilson_interval(correct, len(test))
            loss = found.mean() / 2**20
            share = correct / len(test)
            print(f"| {name} | {engine} | {loss:.4f} | {share:.3f} | {low:.3f}..{high:.3f} |")
    per_image = [1000 * r.seconds / sum(map(len, r.batches)) for r in recorded]
    print(f"\nms a forward: core {per_image[0]:.3f}, TFLM {per_image[1]:.3f}")
    print(f"perturbed forwards of each: {trainers[0].forwards:,}")


def compare_logits(core: CoreEngine, micro: TFLiteMicroEngine, images: np.ndarray) -> None:
    """Print how often int8 logits, and all of an image, are equal."""
    own = core.model.core.logits(images, 1, True)
    found = micro.logits(images)
    tensor = core.model.core.tensors()[core.model.core.output_tensor]
    labels = np.zeros(len(images), np.int64)
    pairs = zip(core.losses(images, labels)[0], micro.losses(images, labels)[0], strict=True)
    equal = (own == found).all(axis=1)
    assert all(x == y for (x, y), same in zip(pairs, equal, strict=True) if same)
    print(
        f"{len(images)} images: {(own == found).mean():.1%} of int8 logits are equal, "
        f"{equal.mean():.1%} of images in all of them, and then in their loss; at most "
        f"{np.abs(own - found).max() / tensor['scale']:.0f} steps apart; top-1 equal "
        f"{(own.argmax(1) == found.argmax(1)).mean():.1%}"
    )


def correlation(recorded: tuple[Recorded, Recorded]) -> float:
    """Correlate what the queries of the last step added to the mean loss."""
    changes = []
    for engine in recorded:
        clean, *queries = (batch.mean() for batch in engine.batches[engine.last :])
        changes.append([loss - clean for loss in queries])
        engine.last = len(engine.batches)
    return float(np.corrcoef(*changes)[0, 1])


if __name__ == "__main__":
    main()
