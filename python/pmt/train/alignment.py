"""Alignment: give a network the statistics on new images that it has on clean ones.

A corruption moves and scales what the channels of a network see, and it changes how neighboring
places go together: noise decorrelates them, blur does the opposite.

Channels: batch norm, were it not folded into the weights, could be measured anew on the new images:
adaptive batch normalization (Li et al. 2016, arXiv:1603.04779; Schneider et al. 2020,
arXiv:2006.16971). An int8 network has biases and one weight scale a channel instead, and these can
be set to the same effect.

Covariances: for a layer with spatial windows, the linear map that gives a window's values their
clean covariances and moves them least (the optimal transport between normal distributions) goes
into the layer's weights. It is correlation alignment (CORAL; Sun, Saenko 2016, arXiv:1607.01719)
for filters.

Reliability: where new images are rougher than clean ones, layers that mix channels give each as
much weight as it keeps of itself when the images are disturbed further
(:mod:`pmt.train.noise_probe`).

All take forward passes alone, no labels and no perturbations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt._util.threads import thread_count
from pmt.model import Model
from pmt.train.clean_statistics import (
    CleanStatistics,
    aligned_layers,
    stored_statistics,
    window_layers,
)
from pmt.train.costs.work import Cost
from pmt.train.noise_probe import disturbed_pairs, noise_share

__all__ = ["Alignment", "align", "alignment_cost"]

# From clean statistics, which are a good guess, a second look brings nothing.
_ROUNDS = 1
# Images that are disturbed, at most.
_PAIRS = 256
# The strength is so many times what the noise's share, a third for severe Gaussian noise, has
# beyond the margin, which clean images reach by chance. Chosen on held-out images.
_STRENGTH, _MARGIN = 2.5, 0.05


@dataclass(frozen=True)
class Alignment:
    """Work of an alignment: unperturbed ``forwards`` of the network, ``macs`` in all."""

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
    reliability: bool = True,
    threads: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Alignment:
    """Align a model in place.

    Channels by biases and weight scales; covariances by the weights of layers with windows;
    reliability by the weights of layers that mix channels.

    Layer by layer, from the first on: every layer is measured with those before it aligned. The
    activations of all images are kept from one layer to the next: 128 KB an image for MCUNet.

    Parameters
    ----------
    model : Model
        The model.
    images : ndarray of uint8, shape (N, height, width, channels)
        New images, of the model's input size; some hundred are enough. No labels.
    reference : CleanStatistics, optional
        Statistics of clean images (:func:`pmt.train.clean_statistics.measure_statistics`); by
        default those stored in the model.
    windows : bool
        Align covariances too, in the layers whose clean ones are known; without, no int8 weight
        changes.
    reliability : bool
        Weigh channels by their reliability too, where new images hold noise, which the windows of
        the first layer that has some tell; layers before that one are left as they are. It takes
        the activations of up to 512 more images.
    threads : int
        Threads to use; 0 takes all. The result does not depend on it.
    progress : callable, optional
        Called as ``progress(done, layers)`` after each layer.

    Returns
    -------
    Alignment
        Its work.

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
    inputs = model.prepare(images)
    core = _core.Statistics(model.core, inputs, thread_count(threads))
    noise = _Noise(model, inputs, thread_count(threads)) if reliability else None
    for done, (index, name) in enumerate(layers.items()):
        if windows and name in known.windows:
            clean = known.windows[name]
            found = core.measure_windows(index, clean.means)
            core.align_covariances(index, clean, found)
            if noise is not None:
                noise.look_at(index, clean.covariances, found[1])
        if noise is not None:
            noise.weigh(index)
        measured = core.measure(index, known.channels[name], _ROUNDS)
        core.align(index, known.channels[name], measured)
        if progress is not None:
            progress(done + 1, len(layers))
    cost = alignment_cost(
        model,
        len(images),
        windows=windows and bool(known.windows),
        reliability=noise is not None and noise.found,
    )
    return Alignment(len(images), len(layers), cost.forwards, cost.macs)


class _Noise:
    """Weighs channels by their reliability, once a look at windows has found noise."""

    def __init__(self, model: Model, images: npt.NDArray[np.int8], threads: int) -> None:
        self._model = model
        # Spread over all images, which may be in the order of their classes.
        count = min(len(images), _PAIRS)
        self._images = images[np.arange(count) * len(images) // count]
        self._threads = threads
        self._strength = -1.0  # not known yet
        self._pairs: _core.Statistics | None = None

    def look_at(
        self, index: int, clean: npt.NDArray[np.float32], found: npt.NDArray[np.float32]
    ) -> None:
        """Settle the strength, at the first layer with windows."""
        if self._strength >= 0:
            return
        kernel = self._model.core.ops()[index]["kernel"]
        share = noise_share(clean, found, kernel)
        self._strength = min(1.0, max(0.0, _STRENGTH * (share - _MARGIN)))
        if self._strength > 0:
            pairs = disturbed_pairs(self._images)
            self._pairs = _core.Statistics(self._model.core, pairs, self._threads)

    @property
    def found(self) -> bool:
        """Whether there is any."""
        return self._pairs is not None

    def weigh(self, index: int) -> None:
        """Weigh the channels that a layer mixes."""
        if self._pairs is not None and _core.mixes_channels(self._model.core, index):
            found = self._pairs.measure_reliability(index)
            self._pairs.weigh_channels(index, found, self._strength)


def alignment_cost(
    model: Model, images: int, *, windows: bool = True, reliability: bool = True
) -> Cost:
    """Count the forwards of an alignment and their work.

    One forward an image up to the last layer but one, for activations are kept from layer to layer;
    every layer once more to be measured; with windows, a product for every place, distance and pair
    of channels; with reliability, which goes by the windows, two forwards more for each of up to
    256 images, as if there were noise in them.
    """
    macs = [int(op["macs"]) for op in model.core.ops()]
    layers = aligned_layers(model)
    forward = sum(macs[: max(layers, default=0)])
    work = forward + sum(macs[index] for index in layers)
    if windows:
        for index, (groups, values) in window_layers(model).items():
            source = model.core.tensors()[model.core.ops()[index]["inputs"][0]]
            work += source["height"] * source["width"] * groups * values
    disturbed = 2 * min(images, _PAIRS) if windows and reliability else 0
    return Cost(forwards=images + disturbed, macs=images * work + disturbed * forward)
