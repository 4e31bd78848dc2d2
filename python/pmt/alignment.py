"""Alignment: give a network the statistics on new images that it has on clean ones.

A corruption moves and scales what the channels of a network see, and it changes how neighbouring
places go together: noise decorrelates them, blur does the opposite.

Channels: batch norm, were it not folded into the weights, could be measured anew on the new images:
adaptive batch normalisation (Li et al. 2016, arXiv:1603.04779; Schneider et al. 2020,
arXiv:2006.16971). An int8 network has biases and one weight scale a channel instead, and these can
be set to the same effect.

Windows: of a layer that looks at a window, the linear map that gives the window's values their
clean covariances and moves them least (the optimal transport between normal distributions) goes
into the layer's weights. It is the alignment of second-order statistics (Sun, Saenko 2016,
arXiv:1607.01719) for filters.

Both take forward passes alone, no labels and no perturbations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt.clean_statistics import (
    CleanStatistics,
    aligned_layers,
    stored_statistics,
    window_layers,
)
from pmt.cost import Cost
from pmt.model import Model
from pmt.threads import thread_count

__all__ = ["Alignment", "align", "alignment_cost"]

# From clean statistics, which are a good guess, a second look brings nothing.
_ROUNDS = 1


@dataclass(frozen=True)
class Alignment:
    """What an alignment took: unperturbed ``forwards`` of the network, ``macs`` in all."""

    images: int
    layers: int
    forwards: int
    macs: int


def align(
    model: Model,
    images: npt.NDArray[np.uint8],
    reference: CleanStatistics | None = None,
    *,
    windows: bool = True,
    threads: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Alignment:
    """Align a model in place.

    Channels by biases and weight scales; windows by the weights of layers that have some.

    Layer by layer, from the first on: every layer is measured with those before it aligned. The
    activations of all images are kept from one layer to the next: 128 KB an image for MCUNet.

    Parameters
    ----------
    model : Model
        The model.
    images : ndarray of uint8, shape (N, height, width, channels)
        New images, of the model's input size; some hundred are enough. No labels.
    reference : CleanStatistics, optional
        What :func:`pmt.clean_statistics.measure_statistics` measured on clean images; by default
        what is stored in the model.
    windows : bool
        Align windows too, of the layers whose clean windows are known; without, no int8 weight
        changes.
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
    layers = aligned_layers(model)
    known = stored_statistics(model) if reference is None else reference
    if known is None:
        raise ValueError(
            "the model holds no statistics of clean images to align to; measure them with "
            "`pmt statistics MODEL --data CLEAN --out MODEL.pmt`, or pass reference="
        )
    missing = [name for name in layers.values() if name not in known.channels]
    if missing:
        raise ValueError(f"reference has no statistics of layer {missing[0]!r} of the model")
    core = _core.Statistics(model.core, model.prepare(images), thread_count(threads))
    for done, (index, name) in enumerate(layers.items()):
        if windows and name in known.windows:
            clean = known.windows[name]
            core.align_windows(index, clean, core.measure_windows(index, clean.means))
        found = core.measure(index, known.channels[name], _ROUNDS)
        core.align(index, known.channels[name], found)
        if progress is not None:
            progress(done + 1, len(layers))
    cost = alignment_cost(model, len(images), windows=windows and bool(known.windows))
    return Alignment(len(images), len(layers), cost.forwards, cost.macs)


def alignment_cost(model: Model, images: int, *, windows: bool = True) -> Cost:
    """Count the forwards of an alignment and their work.

    One forward an image up to the last layer but one, for activations are kept from layer to layer;
    every layer once more to be measured; with windows, a product for every place, distance and pair
    of channels.
    """
    macs = [int(op["macs"]) for op in model.core.ops()]
    layers = aligned_layers(model)
    work = sum(macs[: max(layers, default=0)]) + sum(macs[index] for index in layers)
    if windows:
        for index, (groups, values) in window_layers(model).items():
            source = model.core.tensors()[model.core.ops()[index]["inputs"][0]]
            work += source["height"] * source["width"] * groups * values
    return Cost(forwards=images, macs=images * work)
