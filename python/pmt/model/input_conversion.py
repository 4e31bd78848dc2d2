"""Images and other inputs become a network's int8 input."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt.datasets import Dataset
from pmt.model.argument_checks import array_remedy, images_in_shape, kind_of

__all__ = ["check_range", "inputs_in_shape", "prepared_inputs"]

_AT_ONCE = 1 << 20  # float inputs, so that their float64 copies stay small
_PIXEL_CHANNELS = 4  # that a network's mean and std are kept for
_CHECKED = 1000  # samples
_CLIPPED = 0.1
_FEWEST_STEPS = 8
_OTHER_PIXELS = 0.1  # by which an end of the pixels' range differs from that of 0..1


def prepared_inputs(core: _core.Model, images: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
    """Return the int8 input, see :meth:`pmt.Model.prepare`."""
    kinds = (np.uint8, np.int8, np.float32)
    if not isinstance(images, np.ndarray) or images.dtype not in kinds:
        raise TypeError(
            f"images is {kind_of(images)}: must be a NumPy array of uint8 pixels 0..255, or of "
            f"float32 or int8 inputs that are not pixels{array_remedy(images)}"
        )
    if images.dtype == np.uint8:
        return _from_pixels(core, images)
    shaped = inputs_in_shape(images, core.input_shape)
    return shaped if shaped.dtype == np.int8 else _quantized(core, shaped)


def _from_pixels(core: _core.Model, images: npt.NDArray[np.uint8]) -> npt.NDArray[np.int8]:
    shape = core.input_shape
    images = images_in_shape(images, shape)
    if shape[2] > _PIXEL_CHANNELS:
        raise TypeError(
            f"images are uint8 pixels, but the model's input has {shape[2]} channels, more than "
            f"the {_PIXEL_CHANNELS} of an image; give float32 or int8 inputs"
        )
    scale, zero_point = input_quantization(core)
    pixels = np.arange(256, dtype=np.float64)
    prepared = np.empty(images.shape, np.int8)
    for channel, (mean, std) in enumerate(zip(core.input_mean, core.input_std, strict=True)):
        table = np.rint((pixels - mean) / std / scale) + zero_point
        prepared[..., channel] = np.clip(table, -128, 127).astype(np.int8)[images[..., channel]]
    return prepared


def input_quantization(core: _core.Model) -> tuple[float, int]:
    """Return scale and zero point of the input."""
    tensor = core.tensors()[core.input_tensor]
    return float(tensor["scale"]), int(tensor["zero_point"])


def inputs_in_shape(inputs: npt.NDArray[Any], shape: tuple[int, int, int]) -> npt.NDArray[Any]:
    """Return inputs in a network's shape, from which axes of length 1 may differ."""
    own, wanted = ([n for n in sides if n != 1] for sides in (inputs.shape[1:], shape))
    if inputs.ndim < 2 or own != wanted:
        raise ValueError(
            f"inputs must have shape (N, {', '.join(map(str, shape))}) for this model, where axes "
            f"of length 1 may be left out; got (N, {', '.join(map(str, inputs.shape[1:]))})"
        )
    return np.ascontiguousarray(inputs).reshape(len(inputs), *shape)


def _quantized(core: _core.Model, inputs: npt.NDArray[np.float32]) -> npt.NDArray[np.int8]:
    scale, zero_point = input_quantization(core)
    quantized = np.empty(inputs.shape, np.int8)
    rows = max(1, _AT_ONCE // inputs[:1].size) if len(inputs) else 1
    for first in range(0, len(inputs), rows):
        part = slice(first, first + rows)
        steps = np.rint(inputs[part].astype(np.float64) / scale) + zero_point
        if not np.isfinite(steps).all():
            raise ValueError("inputs hold a value that is not finite: remove or replace it")
        quantized[part] = np.clip(steps, -128, 127)
    return quantized


def check_range(core: _core.Model, data: Dataset) -> None:
    """Warn where float inputs are too large or too small for what the model's input can hold.

    Or where they are pixels of 0..1, and the model reads others.
    """
    if data.images.dtype != np.float32:
        return
    inputs = data.images[:: -(-len(data) // _CHECKED)]
    _warn_of_pixels(core, data.name, inputs)
    scale, zero_point = input_quantization(core)
    low, high = (-128 - zero_point) * scale, (127 - zero_point) * scale
    outside = float(np.mean((inputs < low - scale) | (inputs > high + scale)))
    found = f"data set {data.name!r}: "
    remedy = "normalize them as in the model's training"
    if outside > _CLIPPED:
        warnings.warn(
            f"{found}{outside:.0%} of its inputs lie outside {low:.4g}..{high:.4g}, which the "
            f"model's input can hold, and are clipped; {remedy}",
            stacklevel=3,
        )
    elif float(inputs.max() - inputs.min()) < _FEWEST_STEPS * scale:
        warnings.warn(
            f"{found}its inputs, {inputs.min():.4g}..{inputs.max():.4g}, fill fewer than "
            f"{_FEWEST_STEPS} of the 256 steps of {scale:.4g} that the model's input has; {remedy}",
            stacklevel=3,
        )


def _warn_of_pixels(core: _core.Model, name: str, inputs: npt.NDArray[np.float32]) -> None:
    height, width, channels = core.input_shape
    if min(height, width) == 1 or channels not in (1, 3):
        return
    lowest, highest = float(inputs.min()), float(inputs.max())
    ends = [(pixel - core.input_mean[0]) / core.input_std[0] for pixel in (0.0, 255.0)]
    looks_so = lowest >= 0.0 and 0.5 < highest <= 1.0
    if looks_so and max(abs(ends[0]), abs(ends[1] - 1.0)) > _OTHER_PIXELS:
        warnings.warn(
            f"data set {name!r}: its inputs, {lowest:.4g}..{highest:.4g}, look like pixels divided "
            f"by 255, but the model reads pixels as {ends[0]:.4g}..{ends[1]:.4g}; give uint8 "
            "pixels, which the model normalizes itself",
            stacklevel=4,
        )
