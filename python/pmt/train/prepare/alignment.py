"""Alignment: give a network the statistics on new images that it has on clean ones.

A corruption moves and scales what the channels of a network see, and it changes how neighboring
places go together: noise decorrelates them, blur does the opposite.

Channels: batch norm, were it not folded into the weights, could be measured anew on the new images:
adaptive batch normalization (Li et al. 2016, arXiv:1603.04779; Schneider et al. 2020,
arXiv:2006.16971). An int8 network has biases and one weight scale per channel instead, and these
can be set to the same effect.

Covariances: for a layer with spatial windows, the linear map that gives a window's values their
clean covariances and moves them least (the optimal transport between normal distributions) goes
into the layer's weights. It is correlation alignment (CORAL; Sun, Saenko 2016, arXiv:1607.01719)
for filters.

Reliability: where new images are rougher than clean ones, layers that mix channels give each as
much weight as it keeps of itself in noise probes: copies of the images with still more noise, taken
from the images themselves. Images made noisier still tell about their own noise, as is known from
denoising (Moran et al. 2020, arXiv:1910.11908).

Few images differ from clean ones by chance. They are measured in groups, whose scatter tells how
much: that much of the distance to the clean statistics is left alone (James and Stein 1961).

All take forward passes only, no labels and no perturbations.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pmt import _core
from pmt._util.arrays import Array, FloatArray, Int8Array, Int32Array
from pmt._util.checks import check_callable, checked_flag
from pmt._util.processes import thread_count
from pmt._util.text import counted
from pmt.datasets import Dataset
from pmt.model import Model
from pmt.model.layers import copy_parameters
from pmt.model.model import check_model
from pmt.protocol.stratification import first_of_copies
from pmt.train.costs.work import Cost
from pmt.train.prepare.clean_statistics import (
    CleanStatistics,
    WindowStatistics,
    aligned_layers,
    check_reference,
    prepared_images,
    stored_statistics,
    window_layers,
)

# A second round brings nothing: clean statistics are a good start.
_ROUNDS = 1
_FEWEST = 2  # one image has no scatter


@dataclass(frozen=True, repr=False)
class Alignment:
    """Work of an alignment: unperturbed ``forwards`` of the network, ``macs`` in all."""

    images: int
    layers: int
    forwards: int
    macs: int

    def __repr__(self) -> str:
        images = counted(self.images, "image")
        if self.layers == 0:
            return (
                f"<Alignment: nothing aligned to {images}; give {_FEWEST} or more, all different>"
            )
        aligned = f"{counted(self.layers, 'layer')} to {images}"
        return f"<Alignment of {aligned}: {self.forwards:,} forwards, {self.macs:,} MACs>"


def align(
    model: Model,
    images: Array,
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
    activations of all images are kept from one layer to the next: 128 KB per image for MCUNet.

    Parameters
    ----------
    model : Model
        The model.
    images : ndarray of uint8, float32 or int8, shape (N, height, width, channels)
        New images, as :meth:`pmt.Model.prepare` takes them; some hundred are enough, and of a few
        what chance explains is left alone. Equal images count once, and a single one changes
        nothing. No labels.
    reference : CleanStatistics, optional
        Statistics of clean images
        (:func:`pmt.train.prepare.measure_statistics`); by default those stored in
        the model.
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
        If no reference is given or stored, one does not fit the model, or there is no image.
    """
    check_model(model)
    checked_flag("windows", windows)
    checked_flag("reliability", reliability)
    check_callable("progress", progress)
    check_reference(reference)
    layers = aligned_layers(model)
    known = stored_statistics(model) if reference is None else reference
    if known is None:
        raise ValueError(
            "the model holds no statistics of clean images to align to; measure them with "
            "`pmt statistics MODEL --data CLEAN --out MODEL.pmt`, or in Python pass reference="
        )
    missing = [name for name in layers.values() if name not in known.channels]
    if missing:
        raise ValueError(f"reference has no statistics of layer {missing[0]!r} of the model")
    inputs = prepared_images(model, images)
    inputs = inputs[first_of_copies(Dataset.unlabeled(inputs))]  # copies have no scatter
    if len(inputs) < _FEWEST:
        return Alignment(len(images), 0, 0, 0)
    groups = _Groups(model, inputs, thread_count(threads))
    noise = _Noise(model, inputs, thread_count(threads)) if reliability else None
    before = model.copy()
    try:
        for done, (index, name) in enumerate(layers.items()):
            if windows and name in known.windows:
                clean = known.windows[name]
                covariances = groups.align_windows(index, clean)
                if noise is not None:
                    noise.measure(index, clean.covariances, covariances)
            if noise is not None:
                noise.weigh(index)
            groups.align_channels(index, known.channels[name])
            if progress is not None:
                progress(done + 1, len(layers))
    except BaseException:  # a model that is half aligned would be aligned otherwise the next time
        del groups, noise
        copy_parameters(before, model)
        raise
    cost = alignment_cost(
        model,
        len(images),
        windows=windows and bool(known.windows),
        reliability=noise is not None and noise.found,
    )
    return Alignment(len(images), len(layers), cost.forwards, cost.macs)


class _Groups:
    """The images in groups, whose scatter tells how certain the statistics of all of them are."""

    def __init__(self, model: Model, images: Int8Array, threads: int) -> None:
        self._model = model
        count = min(len(images), _core.IMAGE_GROUPS)
        # Spread over all images, which may be in the order of their classes.
        parts = [np.ascontiguousarray(images[first::count]) for first in range(count)]
        self._images = np.array([len(part) for part in parts], np.int32)
        self._parts = [_core.Statistics(model.core, part, threads) for part in parts]

    def align_windows(self, index: int, clean: WindowStatistics) -> FloatArray:
        """Align a layer's covariances, and return those of each group."""
        found = [part.measure_windows(index, clean.means) for part in self._parts]
        means = _mean([means for means, _ in found], self._images)
        covariances = np.stack([values for _, values in found])
        shrunk = _core.shrink_windows(
            self._model.core, index, clean.covariances, covariances, self._images
        )
        self._parts[0].align_covariances(index, clean, (means, shrunk))
        return covariances

    def align_channels(self, index: int, clean: FloatArray) -> None:
        """Align a layer's channels."""
        found = np.stack([part.measure(index, clean, _ROUNDS) for part in self._parts])
        shrunk = _core.shrink_channels(clean, found, self._images)
        self._parts[0].align(index, clean, shrunk)


def _mean(values: list[FloatArray], images: Int32Array) -> FloatArray:
    """Return the mean over groups of images, weighted by their size, summed in their order."""
    total = values[0] * np.float32(images[0])
    for value, count in zip(values[1:], images[1:], strict=True):
        total = total + value * np.float32(count)
    mean: FloatArray = total / np.float32(images.sum())
    return mean


class _Noise:
    """Weighs channels by their reliability, once the windows of a layer have shown noise."""

    def __init__(self, model: Model, images: Int8Array, threads: int) -> None:
        self._model = model
        # Spread over all images, which may be in the order of their classes.
        count = _core.probed_images(model.core, len(images))
        self._images = images[np.arange(count) * len(images) // count]
        self._threads = threads
        self._strength = -1.0  # not known yet
        self._probes: _core.Statistics | None = None

    def measure(self, index: int, clean: FloatArray, found: FloatArray) -> None:
        """Settle the strength, at the first layer with windows, from those of each group."""
        if self._strength >= 0:
            return
        self._strength = _core.reliability_strength(self._model.core, index, clean, found)
        if self._strength > 0:
            probes = _core.noise_probes(self._model.core, self._images)
            self._probes = _core.Statistics(self._model.core, probes, self._threads)

    @property
    def found(self) -> bool:
        """Whether there is any."""
        return self._probes is not None

    def weigh(self, index: int) -> None:
        """Weigh the channels that a layer mixes."""
        if self._probes is not None and _core.mixes_channels(self._model.core, index):
            found = self._probes.measure_reliability(index)
            self._probes.weigh_channels(index, found, self._strength)


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
    probes = 2 * _core.probed_images(model.core, images) if windows and reliability else 0
    return Cost(forwards=images + probes, macs=images * work + probes * forward)
