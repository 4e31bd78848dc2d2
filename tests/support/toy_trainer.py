"""A trainer of a user's own: one that pmt has never heard of."""

from dataclasses import dataclass

import numpy as np
from networks import random_dataset, residual_network

import pmt
from pmt.datasets import Dataset
from pmt.model import ImageScores
from pmt.train.stepper import Stepper
from pmt.train.trainer import Trainer

HEAD = 7


@dataclass(frozen=True)
class ToyOptions:
    epochs: int = 3
    macs: int = 0
    batch: int = 4
    learning_rate: float = 1.0
    final_learning_rate: float = 1.0
    seed: int = 1
    keep_best: bool = False


class ToyStepper(Stepper):
    """Turns each batch into a weight change that depends on all the batches before it."""

    def __init__(self, model, losses) -> None:
        self.model = model
        self.velocity = np.zeros(model.core.weights(HEAD).shape, np.int64)
        self.losses = losses
        self.stop_in_step = -1
        self.stop_in_evaluation = False

    def step(self, images, labels, step, learning_rate):
        self.velocity = self.velocity // 2 + int(images.astype(np.int64).sum()) + labels.sum()
        self.steps_taken += 1
        if step == self.stop_in_step:
            raise KeyboardInterrupt
        weights = (self.velocity % 255 - 127).astype(np.int8)
        self.model.core.set_parameters(HEAD, weights, self.model.core.bias(HEAD))
        return {"loss": 1.0 + step, "correct": 1, "changed": 3, "rate": learning_rate}

    def state(self):
        return {"velocity": self.velocity}

    def load_state(self, state):
        if "velocity" not in state:
            raise ValueError("velocity is missing from the checkpoint")
        self.velocity = state["velocity"]

    def score_images(self, model, data, threads):
        """Score ten images: all with one loss, as many right as the accuracy says."""
        if self.stop_in_evaluation:
            raise KeyboardInterrupt
        loss, accuracy = next(self.losses)
        return ImageScores(np.full(10, loss), np.arange(10) < round(10 * accuracy))


class Toy(Trainer):
    name = "toy"
    threads = 1

    def __init__(self, *, losses=(), change=lambda stepper: None, **options) -> None:
        self.options = ToyOptions(**options)
        self.losses = iter(losses)
        self.change = change

    def cost(self, model, *, samples=None):
        return pmt.Cost(forwards=10, macs=1000)

    def run(self, **arguments):
        """Fit a new model to three batches."""
        return self.fit(residual_network(), data(), **{"progress": False, **arguments})

    def stepper(self, model, samples):
        stepper = ToyStepper(model, self.losses)
        self.change(stepper)
        return stepper


def data(count: int = 13, seed: int = 0) -> Dataset:
    return random_dataset(residual_network(), count, seed)


class Stop(BaseException):
    pass


def stop_at(step: int):
    def callback(done, record):
        if done == step:
            raise Stop

    return callback


def flat(n: int):
    return [(1.0, 0.5)] * n
