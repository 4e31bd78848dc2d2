"""Images and other inputs become a network's int8 input."""

import dataclasses
import math
import warnings
from weakref import WeakKeyDictionary

import numpy as np

from pmt import _core
from pmt._util.arrays import Array, FloatArray, Int8Array, Uint8Array
from pmt._util.checks import kind_of, refuse_mask, tensor_calls, warn_of_argument
from pmt._util.text import counted
from pmt.datasets import Dataset
from pmt.datasets.arrays import IMAGE_CHANNELS
from pmt.net.graph import FEATURE_INPUTS, Tensor
from pmt.net.image import read_metadata
from pmt.net.pixels import (
    MOST_PIXEL_CHANNELS,
    PixelFormula,
    int8_inputs,
    is_unlikely,
    may_be_image,
    pixel_table,
    real_ends,
)

Shape = tuple[int, ...]

_AT_ONCE = 1 << 20  # float inputs, so that their steps take little memory
_CHECKED = 1000  # samples
_CLIPPED = 0.1
_FEWEST_STEPS = 8
_LOST_STEPS = 2  # that a column spans
# The largest value of 5 bits. Noise and the brightest spots of a camera's pictures, even dark ones,
# exceed it; pixels of 0..1, 0..15 or 0..16, which other libraries have, do not.
_DIMMEST = 31
_reads_features: WeakKeyDictionary[_core.Model, bool] = WeakKeyDictionary()
_CHANNEL_REMEDIES = {  # by channels found and wanted; Pillow weighs colors so, too
    (1, 3): "images.repeat(3, axis=3)",
    (3, 1): "(images @ [0.299, 0.587, 0.114]).round().astype(numpy.uint8)[..., None]",
}
_OTHER_PIXELS = 0.1  # by which an end of the pixels' range differs from that of 0..1


def check_inputs(core: _core.Model, data: Dataset, given: object) -> None:
    """Refuse inputs of another kind or shape than a model's; an error has the shape as given.

    A data set of a pair ``(x, y)`` has axes that ``x`` may lack.
    """
    shape = tuple(np.shape(given[0])) if isinstance(given, tuple) else data.images.shape
    prepared_inputs(core, data.images[:1], given=shape)


def prepared_inputs(
    core: _core.Model, images: Array, threads: int = 0, *, given: Shape | None = None
) -> Int8Array:
    """Return the int8 input, see :meth:`pmt.Model.prepare`; errors name the shape `given`."""
    refuse_mask("images", images)
    kinds = (np.uint8, np.int8, np.float32)
    if not isinstance(images, np.ndarray) or images.dtype not in kinds:
        raise TypeError(
            f"images is {kind_of(images)}: must be a NumPy array of uint8 pixels 0..255, or of "
            f"float32 or int8 inputs that are not pixels{array_remedy(images)}"
        )
    if images.dtype == np.uint8:
        if reads_features(core):
            raise TypeError(
                "images are uint8 pixels, but the model was quantized for inputs that are not "
                "pixels; give an array of these, float32 or int8, or an .npz file whose array "
                "'images' is one"
            )
        if core.frame_size is not None:
            frames = images_in_shape(images, image_shape(core), given)
            return core.run_stage(np.ascontiguousarray(frames), threads)
        return _from_pixels(core, images_in_shape(images, core.input_shape, given))
    if images.dtype == np.float32 and core.frame_size is not None:
        frame = ", ".join(map(str, image_shape(core)))
        raise TypeError(
            f"images is {kind_of(images)}, and the model has an input stage, which takes uint8 "
            f"pixels 0..255 of shape (N, {frame}): give these, int8 inputs of the network behind "
            "the stage, or a model without one, see with_input_stage(None) and --no-input"
        )
    shaped = inputs_in_shape(images, core.input_shape, given)
    return shaped if shaped.dtype == np.int8 else _quantized(core, shaped)


def reads_features(core: _core.Model) -> bool:
    """Whether a model was quantized on inputs that are not pixels."""
    if core not in _reads_features:  # statistics make metadata long
        metadata = read_metadata(core.metadata().encode())
        _reads_features[core] = FEATURE_INPUTS.items() <= metadata.items()
    return _reads_features[core]


def image_shape(core: _core.Model) -> tuple[int, int, int]:
    """Return height, width and channels of the images that a model takes."""
    return (*(core.frame_size or core.input_shape[:2]), core.input_shape[2])


def _from_pixels(core: _core.Model, images: Uint8Array) -> Int8Array:
    channels = core.input_shape[2]
    if channels > MOST_PIXEL_CHANNELS:
        raise TypeError(
            f"images are uint8 pixels, but the model's input has {channels} channels, more than "
            f"the {MOST_PIXEL_CHANNELS} of an image; give float32 or int8 inputs"
        )
    scale, zero_point = input_quantization(core)
    table = pixel_table(PixelFormula(core.input_mean, core.input_std), scale, zero_point)
    prepared = np.empty(images.shape, np.int8)
    for channel, values in enumerate(table):
        prepared[..., channel] = values[images[..., channel]]
    return prepared


def input_quantization(core: _core.Model) -> tuple[float, int]:
    """Return scale and zero point of the input."""
    tensor = core.tensors()[core.input_tensor]
    return float(tensor["scale"]), int(tensor["zero_point"])


def inputs_in_shape(inputs: Array, shape: Shape, given: Shape | None = None) -> Array:
    """Return inputs in a network's shape, from which axes of length 1 may differ."""
    found = given or inputs.shape
    own, wanted = ([n for n in sides if n != 1] for sides in (inputs.shape[1:], shape))
    if inputs.ndim < 2 or own != wanted:
        got = f"(N, {', '.join(map(str, found[1:]))})"
        if [n for n in found if n != 1] == wanted:
            got = f"{found}; of one input x give x[None]"
        elif own == [math.prod(shape)]:
            got += f"; {_rows_remedy('inputs', shape)}"
        raise ValueError(
            f"inputs must have shape (N, {', '.join(map(str, shape))}) for this model, where axes "
            f"of length 1 may be left out; got {got}"
        )
    return np.ascontiguousarray(inputs).reshape(len(inputs), *shape)


def _quantized(core: _core.Model, inputs: FloatArray) -> Int8Array:
    scale, zero_point = input_quantization(core)
    quantized = np.empty(inputs.shape, np.int8)
    rows = max(1, _AT_ONCE // inputs[:1].size) if len(inputs) else 1
    for first in range(0, len(inputs), rows):
        part = slice(first, first + rows)
        if not np.isfinite(inputs[part]).all():
            raise ValueError("inputs hold a value that is not finite: remove or replace it")
        quantized[part] = int8_inputs(inputs[part], scale, zero_point)
    return quantized


def check_range(core: _core.Model, data: Dataset) -> None:
    """Warn where floats do not fit, see :func:`check_floats`, or are pixels that none reads."""
    if data.images.dtype == np.uint8:
        _warn_of_other_inputs(core, data.name)
    check_floats(core, data.images, data.name, stacklevel=4)


def check_floats(core: _core.Model, images: Array, name: str, *, stacklevel: int = 3) -> None:
    """Warn where float inputs are too large or too small for the range of the model's input.

    Or where they are pixels of 0..1 or 0..255, and the model reads others; or uint8 of a few levels
    near 0.
    """
    if images.dtype == np.uint8:
        _warn_of_few_levels(core, images, name)
    if images.dtype != np.float32 or not images.size or core.frame_size is not None:
        return  # an input stage refuses floats
    inputs = images[:: -(-len(images) // _CHECKED)]
    if _warn_of_pixels(core, name, inputs, stacklevel + 1):
        return
    scale, zero_point = input_quantization(core)
    low, high = (-128 - zero_point) * scale, (127 - zero_point) * scale
    outside = float(np.mean((inputs < low - scale) | (inputs > high + scale)))
    found = f"data set {name!r}: "
    remedy = "normalize them as in the model's training"
    if outside > _CLIPPED:
        warnings.warn(
            f"{found}{outside:.0%} of its inputs lie outside {low:.4g}..{high:.4g}, which the "
            f"model's input can hold, and are clipped; {remedy}",
            stacklevel=stacklevel,
        )
    elif float(inputs.max() - inputs.min()) < _FEWEST_STEPS * scale:
        warnings.warn(
            f"{found}its inputs, {inputs.min():.4g}..{inputs.max():.4g}, fill fewer than "
            f"{_FEWEST_STEPS} of the 256 steps of {scale:.4g} that the model's input has; {remedy}",
            stacklevel=stacklevel,
        )


def _warn_of_few_levels(core: _core.Model, images: Uint8Array, name: str) -> None:
    """Warn where the brightest pixel of several images is dim, unless the model reads it so."""
    if len(images) < 2 or images[:: -(-len(images) // _CHECKED)].max(initial=0) > _DIMMEST:
        return
    highest = int(images.max(initial=0))
    steps = highest / (core.input_std[0] * input_quantization(core)[0])
    if 0 < highest <= _DIMMEST and steps <= _DIMMEST:
        warn_of_argument(
            UserWarning(
                f"data set {name!r}: its brightest pixel is {highest}, and the model reads pixels "
                f"of 0..255; if {highest} is white, multiply by 255 / {highest}: "
                f"(images * (255 / {highest})).astype(numpy.uint8)"
            )
        )


def warn_of_lost_columns(core: _core.Model, data: Dataset) -> None:
    """Warn where the model's input rounds columns of float inputs to a value or two.

    All columns have one scale, that of the widest.
    """
    if data.images.dtype != np.float32 or not len(data):
        return
    spans = np.ptp(data.images[:: -(-len(data) // _CHECKED)], axis=(0, 1, 2))
    scale, widest = input_quantization(core)[0], spans.max()
    lost = spans[(spans > 0.0) & (spans < _LOST_STEPS * scale)]
    if lost.size and widest >= _FEWEST_STEPS * scale:
        warn_of_argument(
            UserWarning(
                f"data set {data.name!r}: the model's input loses {lost.size} of its "
                f"{counted(spans.size, 'column')}: the narrowest spans {lost.min():.4g}, the "
                f"widest {widest:.4g}, and a step of int8 is {scale:.4g}; standardize the columns, "
                "(x - mean) / std, before the float network is trained"
            )
        )


def _warn_of_other_inputs(core: _core.Model, name: str) -> None:
    names = [field.name for field in dataclasses.fields(Tensor)]
    tensors = [Tensor(*(tensor[name] for name in names)) for tensor in core.tensors()]
    if not is_unlikely([tensors[core.input_tensor], *tensors], core.input_mean[0]):
        return
    low, high = real_ends(PixelFormula(core.input_mean, core.input_std))[0]
    warnings.warn(
        f"data set {name!r} has pixels, and the model's input seems to be none: 0..255 are read as "
        f"{low:.4g}..{high:.4g}; load its file again with input_mean and input_std, or give inputs "
        "as float32",
        stacklevel=4,
    )


def _warn_of_pixels(core: _core.Model, name: str, inputs: FloatArray, stacklevel: int) -> bool:
    """Warn of floats that look like pixels which the model reads otherwise; return whether so."""
    if not may_be_image(core.input_shape) or reads_features(core):
        return False
    scale, zero_point = input_quantization(core)
    most = max(1.0, (128 - zero_point) * scale)
    lowest, highest = float(inputs.min()), float(inputs.max())
    ends = [(pixel - core.input_mean[0]) / core.input_std[0] for pixel in (0.0, 255.0)]
    if lowest >= 0.0 and 0.5 < highest <= 1.0:
        looks, own = "pixels divided by 255", (0.0, 1.0)
    elif lowest >= 0.0 and most < highest <= 255.0 and (inputs == np.rint(inputs)).all():
        looks, own = "pixels 0..255", (0.0, 255.0)
    else:
        return False
    if max(abs(end - other) for end, other in zip(ends, own, strict=True)) <= _OTHER_PIXELS:
        return False
    warnings.warn(
        f"data set {name!r}: its inputs, {lowest:.4g}..{highest:.4g}, look like {looks}, but the "
        f"model reads pixels as {ends[0]:.4g}..{ends[1]:.4g}; give uint8 pixels, which the model "
        "normalizes itself",
        stacklevel=stacklevel,
    )
    return True


def images_in_shape(
    images: Array, expected: tuple[int, int, int], given: Shape | None = None
) -> Array:
    """Return images of a model's shape, or raise a ValueError; gray ones may lack the last axis."""
    if images.ndim == 4 and images.shape[1:] == expected:
        return images
    if images.ndim == 3 and (*images.shape[1:], 1) == expected:
        return images[..., None]
    rule = f"images must have shape (N, {', '.join(map(str, expected))}) for this model"
    found = given or images.shape
    remedy = _shape_remedy(found, expected)
    raise ValueError(f"{rule}; got {found}{'; ' if remedy else ''}{remedy}")


def array_remedy(images: object) -> str:
    """Return the conversion of a value to an array of images, for an error; empty without one."""
    if isinstance(images, np.ndarray):
        return (
            "; scale pixels to 0..255 and convert them with .astype(numpy.uint8), other inputs "
            "with .astype(numpy.float32)"
        )
    if isinstance(images, Dataset):
        return "; give the data set's .images"
    if isinstance(images, tuple) and len(images) == 2 and np.ndim(images[1]) < 2:
        return "; of a pair (x, y) give the images alone, x"
    if isinstance(images, (list, tuple)):
        return "; numpy.stack(images) makes one array of images of one shape"
    if isinstance(images, str):
        return "; pmt.datasets.load(path) reads files"
    if hasattr(images, "__array__"):
        return f"; numpy.asarray(images{tensor_calls(images)}) makes one"
    return ""


def _rows_remedy(name: str, shape: Shape) -> str:
    return f"of flat rows give {name}.reshape(-1, {', '.join(map(str, shape))})"


def _shape_remedy(found: Shape, expected: tuple[int, int, int]) -> str:
    height, width, channels = expected
    if found == expected or (*found, 1) == expected or (len(found) == 3 and found[2] == channels):
        return "one image needs an axis before its own: images[None]"
    if found == (channels, height, width):
        return "channels come last, and one image needs an axis: images.transpose(1, 2, 0)[None]"
    if len(found) == 2 and found[1] == math.prod(expected):
        return _rows_remedy("images", expected)
    if len(found) not in (3, 4) or (len(found) == 3 and found[2] in IMAGE_CHANNELS):
        return ""
    if len(found) == 3 and channels > 1:
        repeated = f"images[..., None].repeat({channels}, axis=3)"
        return f"the model takes {channels} channels, and gray images have one: {repeated}"
    if len(found) == 4 and found[1] == channels != found[3]:
        return "channels come last: images.transpose(0, 2, 3, 1)"
    if len(found) == 4 and found[3] != channels:
        has = f"the model takes {counted(channels, 'channel')}, these have {found[3]}"
        remedy = _CHANNEL_REMEDIES.get((found[3], channels), "use other images or another model")
        return f"{has}: {remedy}"
    size = height if height == width else (height, width)
    return (
        f"Dataset.from_arrays(images, labels).resize({height}, {width}) or, of files, "
        f"pmt.datasets.load(..., size={size}) resizes"
    )
