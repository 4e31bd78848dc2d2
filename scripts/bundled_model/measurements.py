"""Accuracy of the float and of the int8 network."""

from __future__ import annotations

import numpy as np

from pmt import Model
from pmt.corruptions import corrupt
from pmt.datasets import Dataset
from pmt.quantization import FloatGraph, float_activations, normalize

BATCH = 250
CORRUPTIONS = ("gaussian_noise", "shot_noise", "impulse_noise", "contrast", "fog", "brightness")
SEVERITY = 5


def float_accuracy(graph: FloatGraph, data: Dataset) -> float:
    """Fraction 0..1 of images that the float network classifies correctly."""
    right = 0
    for first in range(0, len(data), BATCH):
        inputs = normalize(graph, data.images[first : first + BATCH])
        logits = float_activations(graph, inputs)[graph.output]
        guessed = logits.reshape(len(inputs), -1).argmax(axis=1)
        right += int(np.sum(guessed == data.labels[first : first + BATCH]))
    return right / len(data)


def int8_accuracy(model: Model, data: Dataset) -> float:
    """Fraction 0..1 of images that the int8 network classifies correctly."""
    return model.evaluate(data, threads=1).accuracy


def corrupted_accuracies(model: Model, data: Dataset) -> dict[str, float]:
    """Accuracy of the int8 network under each corruption at severity 5, seed 0."""
    return {
        name: int8_accuracy(model, corrupt(data, name, SEVERITY, seed=0)) for name in CORRUPTIONS
    }
