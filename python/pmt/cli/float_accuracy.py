"""Top-1 accuracy of a float network and of the int8 model made from it, on the same images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmt.cli.stages import stage
from pmt.datasets import Dataset
from pmt.model import Model
from pmt.quantization import FloatGraph, float_logits
from pmt.quantization.liveness import batch_size

__all__ = ["Accuracies", "float_accuracy"]


@dataclass(frozen=True)
class Accuracies:
    """Fractions 0..1 of ``n`` images of ``name``; accuracies None where labels do not fit.

    ``agreement`` is the fraction to which both networks give the same class.
    """

    name: str
    n: int
    float_top1: float | None
    int8_top1: float | None
    agreement: float


def float_accuracy(
    graph: FloatGraph, model: Model, data: Dataset, role: str, *, threads: int
) -> Accuracies:
    """Run both networks on all images.

    Parameters
    ----------
    graph : FloatGraph
        The float network.
    model : Model
        The int8 one.
    data : Dataset
        Images of the network's input shape. Where it has other classes than the network has
        logits, accuracy is left out.
    role : str
        What the images are for, shown with the progress.
    threads : int
        Threads of the int8 network, 0 = all.
    """
    progress = stage(f"accuracy, {role}")
    batch = batch_size(graph)
    found: list[tuple[int, int]] = []
    for first in range(0, len(data), batch):
        images = data.images[first : first + batch]
        floating = float_logits(graph, images).argmax(axis=1)
        int8 = model.logits(images, threads=threads).argmax(axis=1)
        found += zip(floating.tolist(), int8.tolist(), strict=True)
        progress(first + len(images), len(data))
    guessed = np.array(found)
    agreement = float(np.mean(guessed[:, 0] == guessed[:, 1]))
    if len(data.class_names) != model.classes:
        return Accuracies(data.name, len(data), None, None, agreement)
    right = np.mean(guessed == data.labels[:, None], axis=0)
    return Accuracies(data.name, len(data), float(right[0]), float(right[1]), agreement)
