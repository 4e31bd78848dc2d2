"""Alignment: give a network the channel statistics on new images that it has on clean ones.

A corruption moves and scales what the channels of a network see. Batch norm, were it not folded
into the weights, could be measured anew on the new images: adaptive batch normalisation (Li et al.
2016, arXiv:1603.04779; Schneider et al. 2020, arXiv:2006.16971). An int8 network has biases and one
weight scale a channel instead, and these can be set to the same effect. It takes forward passes, no
labels and no perturbations, and leaves the int8 weights as they are.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt.cost import Cost
from pmt.model import Model
from pmt.threads import thread_count

__all__ = [
    "Alignment",
    "align",
    "alignment_cost",
    "measure_statistics",
    "stored_statistics",
    "with_statistics",
]

METADATA_KEY = "channel_statistics"
# Each round looks closer. From clean images, which are a good guess, a second brings nothing.
_ROUNDS = 3
_ROUNDS_OF_ALIGNMENT = 1

Statistics = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Alignment:
    """What an alignment took: ``forwards`` of (parts of) the network and their ``macs``."""

    images: int
    layers: int
    forwards: int
    macs: int


def measure_statistics(
    model: Model,
    images: npt.NDArray[np.uint8],
    *,
    threads: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Statistics]:
    """Measure mean and deviation of every channel of every layer but the last.

    Of the layers' outputs before activation and requantisation, over all positions and images, in
    real units.

    Parameters
    ----------
    model : Model
        The model; it does not change.
    images : ndarray of uint8, shape (N, height, width, channels)
        Pixels 0..255, of the model's input size.
    threads : int
        Threads to use; 0 takes all. The result does not depend on it.
    progress : callable, optional
        Called as ``progress(done, layers)`` after each layer.

    Returns
    -------
    dict
        By layer name: float32, shape (2, channels), means and deviations.
    """
    core = _core.Statistics(model.core, thread_count(threads))
    prepared = model.prepare(images)
    layers = _aligned_layers(model)
    found = {}
    for done, (index, name) in enumerate(layers.items()):
        found[name] = core.measure(index, prepared, _first_guess(model, index), _ROUNDS)
        if progress is not None:
            progress(done + 1, len(layers))
    return found


def align(
    model: Model,
    images: npt.NDArray[np.uint8],
    reference: Mapping[str, Statistics] | None = None,
    *,
    threads: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Alignment:
    """Align a model in place: its biases and weight scales change, its weights do not.

    Layer by layer, from the first on: every layer is measured with the layers before it aligned.

    Parameters
    ----------
    model : Model
        The model.
    images : ndarray of uint8, shape (N, height, width, channels)
        New images, of the model's input size; some hundred are enough. No labels.
    reference : mapping, optional
        Statistics on clean images, as :func:`measure_statistics` returns them; by default those
        stored in the model.
    threads : int
        Threads to use; 0 takes all. The result does not depend on it.
    progress : callable, optional
        Called as ``progress(done, layers)`` after each layer.

    Returns
    -------
    Alignment
        What it took.

    Raises
    ------
    ValueError
        If no reference is given or stored, or one does not fit the model.
    """
    layers = _aligned_layers(model)
    known = stored_statistics(model) if reference is None else reference
    if known is None:
        raise ValueError(
            "the model holds no channel statistics of clean images to align to; measure them with "
            "`pmt statistics MODEL --data CLEAN --out MODEL.pmt`, or pass reference="
        )
    missing = [name for name in layers.values() if name not in known]
    if missing:
        raise ValueError(f"reference has no statistics of layer {missing[0]!r} of the model")
    core = _core.Statistics(model.core, thread_count(threads))
    prepared = model.prepare(images)
    for done, (index, name) in enumerate(layers.items()):
        found = core.measure(index, prepared, known[name], _ROUNDS_OF_ALIGNMENT)
        core.align(index, known[name], found)
        if progress is not None:
            progress(done + 1, len(layers))
    cost = alignment_cost(model, len(images))
    return Alignment(len(images), len(layers), cost.forwards, cost.macs)


def alignment_cost(model: Model, images: int) -> Cost:
    """Count the forwards of an alignment, one up to each layer and image, and their work."""
    layers = _aligned_layers(model)
    macs = [int(op["macs"]) for op in model.core.ops()]
    work = sum(sum(macs[: index + 1]) for index in layers)
    return Cost(forwards=images * len(layers), macs=images * work)


def with_statistics(model: Model, statistics: Mapping[str, Statistics], images: int) -> Model:
    """Return a copy of a model that holds the statistics of ``images`` clean images."""
    graph = model.to_graph()
    packed = {
        name: base64.b64encode(values.astype("<f4").tobytes()).decode()
        for name, values in statistics.items()
    }
    graph.metadata = {**graph.metadata, METADATA_KEY: {"images": images, "layers": packed}}
    return Model.from_graph(graph)


def stored_statistics(model: Model) -> dict[str, Statistics] | None:
    """Return the statistics of clean images that a model holds, or None.

    Raises
    ------
    ValueError
        If they are damaged.
    """
    stored: dict[str, Any] | None = model.metadata.get(METADATA_KEY)
    if stored is None:
        return None
    try:
        return {
            name: np.frombuffer(base64.b64decode(text, validate=True), "<f4").reshape(2, -1).copy()
            for name, text in stored["layers"].items()
        }
    except (KeyError, TypeError, AttributeError, ValueError, binascii.Error) as error:
        raise ValueError(f"the model's {METADATA_KEY} are damaged: {error}") from None


def _aligned_layers(model: Model) -> dict[int, str]:
    """Return the layers by op index: all but the last, which has no batch norm."""
    return {layer.index: layer.name for layer in model.layers[:-1]}


def _first_guess(model: Model, index: int) -> Statistics:
    op = model.core.ops()[index]
    out = model.core.tensors()[op["output"]]
    guess = np.zeros((2, out["channels"]), np.float32)
    guess[1] = 32.0 * out["scale"]
    return guess
