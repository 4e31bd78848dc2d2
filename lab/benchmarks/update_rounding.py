"""Measure the effect of rounding int8 updates on training with exact gradients.

    python benchmarks/update_rounding.py cifar10_mcunet --data cifar-10-batches-bin

Gaussian noise of severity 5, seed 0; the first images of the training and of the test set. One line
for each rounding and learning rate, as it ends; `float32` is the dequantized network itself, not
the int8 model that it is written back to.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import pmt
from pmt import corruptions, datasets
from pmt.baselines.backprop import BackpropTrainer
from pmt.datasets import Dataset
from pmt.datasets.picture import Fit, resized
from pmt.protocol import wilson_interval
from pmt.train.stepper import Stepper

ROUNDINGS = ("shadow", "stochastic", "nearest", "truncation", "float32")


def main() -> None:
    """Train once for each setting."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", help="model file, or the name of a bundled one")
    parser.add_argument("--data", required=True, help="folder of CIFAR-10")
    parser.add_argument("--layers", default="paper14", help="what to train")
    parser.add_argument("--train", type=int, default=600, help="training images")
    parser.add_argument("--test", type=int, default=500, help="test images")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.003, 0.01])
    parser.add_argument("--roundings", nargs="+", choices=ROUNDINGS, default=ROUNDINGS)
    options = parser.parse_args()
    model = pmt.load(options.model)
    train = noisy(model, datasets.load(options.data, split="train").take(options.train))
    test = noisy(model, datasets.load(options.data, split="test").take(options.test))
    print(f"before: {described(model.evaluate(test))}", flush=True)
    for rate in options.rates:
        for rounding in options.roundings:
            how = {"arithmetic": "float32"} if rounding == "float32" else {"rounding": rounding}
            trainer = Watched(
                layers=options.layers,
                epochs=options.epochs,
                batch=options.batch,
                learning_rate=rate,
                **how,
            )
            line = outcome(trainer, model.copy(), train, test)
            print(f"{rounding:10s} rate {rate:g}: {line}", flush=True)


class Watched(BackpropTrainer):
    """A trainer that keeps the stepper of its run, which measures the network that was trained."""

    def stepper(self, model: pmt.Model, samples: int) -> Stepper:
        """Make it once."""
        self.last = super().stepper(model, samples)
        return self.last


def outcome(trainer: Watched, model: pmt.Model, train: Dataset, test: Dataset) -> str:
    """Train, and measure the network that was trained."""
    last = trainer.fit(model, train, progress=False).epochs[-1]
    after = described(trainer.last.evaluate(model, test, 1))
    return f"train loss {last['train_loss']:.3f}, {after}, {last['seconds']:.0f} s"


def noisy(model: pmt.Model, data: Dataset) -> Dataset:
    """Corrupt, and upscale to the model's input."""
    corrupted = corruptions.corrupt(data, "gaussian_noise", 5, seed=0)
    return replace(corrupted, images=resized(corrupted.images, Fit(model.input_shape[:2])))


def described(evaluation: pmt.Evaluation) -> str:
    """Test loss, accuracy and its interval."""
    low, high = wilson_interval(round(evaluation.accuracy * evaluation.n), evaluation.n)
    return (
        f"test loss {evaluation.loss:.3f}, accuracy {evaluation.accuracy:.3f} "
        f"({low:.3f}..{high:.3f})"
    )


if __name__ == "__main__":
    main()
