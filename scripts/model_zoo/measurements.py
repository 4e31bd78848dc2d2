"""Accuracy of a zoo network: float and int8, clean and corrupted."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pmt import Model, corruptions
from pmt.datasets import Dataset
from pmt.datasets.picture import Fit, resized

from .torch_network import TorchNetwork
from .training import accuracy

SEVERITY = 5


@dataclass(frozen=True)
class Accuracies:
    """Shares 0..1 of images classified correctly, before any adaptation."""

    float_held_out: float
    float_test: float
    int8_held_out: float
    int8_test: float
    corrupted: dict[str, float]  # int8, test images, severity 5, seed 0


def measure(network: TorchNetwork, model: Model, held_out: Dataset, test: Dataset) -> Accuracies:
    """Measure everything; the test images are used here and nowhere else."""
    return Accuracies(
        float_held_out=accuracy(network, held_out),
        float_test=accuracy(network, test),
        int8_held_out=int8_accuracy(model, held_out),
        int8_test=int8_accuracy(model, test),
        corrupted={
            name: int8_accuracy(model, corruptions.corrupt(test, name, SEVERITY, seed=0))
            for name in corruptions.names()
        },
    )


def int8_accuracy(model: Model, data: Dataset) -> float:
    """Upscale where the model asks for it, and classify."""
    size = model.input_shape[:2]
    if data.images.shape[1:3] != size:
        data = replace(data, images=resized(data.images, Fit(size)))
    return model.evaluate(data).accuracy
