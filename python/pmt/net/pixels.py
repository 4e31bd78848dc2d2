"""How pixels become a network's int8 input: its formula, and evidence from a file's ranges."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np

from pmt._util.arrays import DoubleArray, FloatArray, Int8Array
from pmt._util.checks import plain_number, refuse_mask, warn_of_argument
from pmt.errors import OptionWarning
from pmt.net.graph import FEATURE_INPUTS, Graph, Tensor
from pmt.net.ops import Shape

Vector = DoubleArray
Numbers = float | Sequence[float] | None  # one number, one per channel, or what is usual

# Means and spreads that networks are trained with: pixels as 0..1, -1..1, 0..255 and -128..127,
# and the statistics of ImageNet.
_USUAL = [
    (np.array(mean), np.array(std))
    for mean, std in (
        ((0.0,), (255.0,)),
        ((127.5,), (127.5,)),
        ((0.0,), (1.0,)),
        ((128.0,), (1.0,)),
        ((123.675, 116.28, 103.53), (58.395, 57.12, 57.375)),
    )
]
MOST_PIXEL_CHANNELS = 4  # that a network's mean and std are kept for
_TOLERANCE = 0.02  # of a range, which calibration images need not fill
_CLOSE = 1.01  # steps by which a usual formula may differ from pixel - 128, which loses no value


@dataclass(frozen=True)
class PixelFormula:
    """Mean and spread of each channel, in units of a 0..255 pixel: real = (pixel - mean) / std.

    ``assumed`` says that they are a guess, which nothing in the file confirms.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    assumed: bool = False


def pixel_table(formula: PixelFormula, scale: float, zero_point: int) -> Int8Array:
    """Return the int8 input of every pixel 0..255: int8 (channels, 256)."""
    pixels = np.arange(256, dtype=np.float64)
    mean, std = np.array(formula.mean)[:, None], np.array(formula.std)[:, None]
    return int8_inputs((pixels - mean) / std, scale, zero_point)


def int8_inputs(real: FloatArray | DoubleArray, scale: float, zero_point: int) -> Int8Array:
    """Return finite real inputs as int8.

    In float32, as QuantizeLinear of ONNX: a scale of 1/127.5 puts every other pixel on a tie.
    """
    with np.errstate(over="ignore"):
        steps = np.rint(real.astype(np.float32) / np.float32(scale)) + zero_point
    inputs: Int8Array = np.clip(steps, -128, 127).astype(np.int8)
    return inputs


def may_be_image(shape: Shape) -> bool:
    """Whether inputs of a height, width and number of channels can be pixels of an image."""
    height, width, channels = shape
    return min(height, width) > 1 and channels in (1, 3)


def is_image(shape: Shape) -> bool:
    """Whether inputs look like pixels: one channel that is not square is rather a spectrogram."""
    height, width, channels = shape
    return may_be_image(shape) and (channels == 3 or height == width)


def raw_pixels(source: Tensor) -> PixelFormula:
    """Return the formula with which the int8 input is exactly pixel - 128."""
    channels = min(source.channels, MOST_PIXEL_CHANNELS)
    return PixelFormula((128.0 + source.zero_point,) * channels, (1.0 / source.scale,) * channels)


def pixel_formula(
    tensors: Sequence[Tensor],
    mean: Numbers = None,
    std: Numbers = None,
    *,
    factor: float | Vector = 1.0,
    offset: float | Vector = 0.0,
    note: str | bytes = "",
    stored: str = "",
) -> PixelFormula:
    """Return how pixels become the first of a network's activations.

    ``mean`` and ``std`` are what a user says of the file's real input, (pixel - mean) / std; with
    one of them, the other is mean 0 or std 255. With neither, it is the usual formula whose range
    the input has, else pixel - 128: assumed, if the input can be an image. The file computes input
    * ``factor`` + ``offset``, numbers or one a channel, before the first activation. ``note`` is
    that of pmt in the file, see :func:`noted_formula`; ``stored`` the type of the file's input,
    where ``"uint8"`` holds the pixels themselves.
    """
    source = tensors[0]
    channels = min(source.channels, MOST_PIXEL_CHANNELS)
    if mean is not None or std is not None:
        return whole_steps(given_formula(channels, mean, std, factor, offset), source)
    noted = noted_formula(note, channels)
    if noted is not None:
        return noted
    raw = raw_pixels(source)
    if stored == "uint8" or not may_be_image(source.shape):
        return raw
    guess = replace(raw, assumed=is_image(source.shape))
    return _fitting(tensors, factor, offset) or guess


def is_unlikely(tensors: Sequence[Tensor], mean: float) -> bool:
    """Whether a network seems to read no pixels: by shape and range, and nobody gave a mean."""
    source = tensors[0]
    unusual = not may_be_image(source.shape) or _fitting(tensors) is None
    given = abs(mean - raw_pixels(source).mean[0]) > 1e-3
    return not is_image(source.shape) and unusual and not given


def _fitting(
    tensors: Sequence[Tensor], factor: float | Vector = 1.0, offset: float | Vector = 0.0
) -> PixelFormula | None:
    """Return the one usual formula whose range the first activation has; None without one."""
    source, channels = tensors[0], min(tensors[0].channels, MOST_PIXEL_CHANNELS)
    raw = raw_pixels(source)
    fitting = [formula for formula in _usual(channels, factor, offset) if _fills(formula, tensors)]
    if len(fitting) != 1:
        return None
    differences = np.abs(_steps(fitting[0], source) - _steps(raw, source))
    return raw if differences.max() <= _CLOSE else fitting[0]


def given_formula(
    channels: int,
    mean: Numbers,
    std: Numbers,
    factor: float | Vector = 1.0,
    offset: float | Vector = 0.0,
    default_std: float = 255.0,
) -> PixelFormula:
    """Return ``(pixel - mean) / std`` joined with ``* factor + offset``, which follows it.

    Without a mean it is 0, without a std ``default_std``. Warn of a std that is none of pixels.
    """
    means = per_channel("input_mean", mean, channels, 0.0)
    stds = per_channel("input_std", std, channels, default_std)
    if stds.min() < 1.0:
        remedy = "give 255 times the mean and std of pixels 0..1"
        what = f"={std}: is in units of a 0..255 pixel, and below one of them; {remedy}"
        warn_of_argument(OptionWarning("input_std", what))
    return _joined(means, stds, factor, offset)


def noted_formula(note: str | bytes, channels: int) -> PixelFormula | None:
    """Return the formula in a note of JSON that pmt writes into its files; None without one."""
    try:
        read = json.loads(note)
        mean = per_channel("input_mean", read["input_mean"], channels, 0.0)
        std = per_channel("input_std", read["input_std"], channels, 1.0)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return PixelFormula(tuple(map(float, mean)), tuple(map(float, std)))


def _usual(channels: int, factor: float | Vector, offset: float | Vector) -> list[PixelFormula]:
    each = np.ones(channels)
    return [
        _joined(mean * each, std * each, factor, offset)
        for mean, std in _USUAL
        if len(mean) in (1, channels)
    ]


def _joined(
    mean: Vector, std: Vector, factor: float | Vector, offset: float | Vector
) -> PixelFormula:
    joined = std / factor
    means = mean - offset * joined
    return PixelFormula(tuple(map(float, means)), tuple(map(float, joined)))


def _fills(formula: PixelFormula, tensors: Sequence[Tensor]) -> bool:
    """Whether pixels fill the range of the first activation, as calibration chooses it.

    Where no activation has a zero point, ranges are symmetric: only the larger end is known.
    """
    source, ends = tensors[0], np.array(real_ends(formula))
    if all(tensor.zero_point == 0 for tensor in tensors):
        reach = float(np.abs(ends).max())
        return abs(reach - 127 * source.scale) <= _TOLERANCE * reach
    low, high = min(0.0, float(ends.min())), max(0.0, float(ends.max()))
    steps = np.array((-128, 127)) - source.zero_point
    differences = np.abs(steps * source.scale - (low, high))
    return bool(differences.max() <= _TOLERANCE * (high - low))


def _steps(formula: PixelFormula, source: Tensor) -> Vector:
    """Return the int8 values of the darkest and brightest pixel, before they are rounded."""
    return np.array(real_ends(formula)) / source.scale + source.zero_point


def real_ends(formula: PixelFormula) -> list[tuple[float, float]]:
    """Return the real values of pixels 0 and 255, for each channel."""
    pairs = zip(formula.mean, formula.std, strict=True)
    return [((0.0 - mean) / std, (255.0 - mean) / std) for mean, std in pairs]


def whole_steps(formula: PixelFormula, source: Tensor) -> PixelFormula:
    """Return a formula that keeps all pixels apart where it would round each at a tie.

    A mean of 127.5 and steps of one pixel put every pixel between two steps, and rounding to even
    would make one of each two. The tie goes to the side where fewer pixels leave the int8 range.
    """
    means = []
    for mean, std in zip(formula.mean, formula.std, strict=True):
        shift = source.zero_point - mean
        tie = abs(std * source.scale - 1) < 1e-6 and abs(shift - np.floor(shift) - 0.5) < 1e-6
        means.append(mean + (0.5 if shift > -128 else -0.5) if tie else mean)
    return PixelFormula(tuple(means), formula.std, formula.assumed)


def per_channel(name: str, values: Numbers, channels: int, default: float) -> Vector:
    """Return an option as one finite number per channel."""
    refuse_mask(name, values)
    try:
        if not _are_numbers(values):
            raise TypeError
        array = np.asarray(default if values is None else values, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(
            f"{name}={values!r}: needs one number, or one for each of {channels} input channels"
        ) from None
    shown = array.tolist()
    if array.ndim == 0:
        array = np.full(channels, float(array))
    if array.shape != (channels,) or not np.all(np.isfinite(array)):
        raise ValueError(
            f"{name}={shown}: needs one finite number, or one for each of the {channels} "
            "input channels, in units of a 0..255 pixel"
        )
    if name == "input_std" and not np.all(array > 0):
        raise ValueError(f"input_std={shown}: must be positive")
    return array


def _are_numbers(values: Numbers) -> bool:
    """Whether values are real numbers or None: NumPy makes floats of texts and of True, too."""
    each = np.asarray(0 if values is None else values, object).ravel().tolist()
    return all(
        isinstance(number := plain_number(value), Real) and not isinstance(number, bool)
        for value in each
    )


def input_formula(graph: Graph) -> str:
    """Return how pixels, or other inputs, become the int8 input, with the graph's numbers.

    ``int8 = pixel - 128`` where it is just that, otherwise ``int8 = round((pixel - mean) / std /
    scale) + zero_point`` with every number; ``int8 = round(real / scale) + zero_point`` of inputs
    that are no image. Results are clipped to -128..127; halves round to even. Filters before the
    network are named.
    """
    filters = graph.stage is not None and graph.stage.filters
    return _formula(graph) + (f", behind the filters {graph.stage}" if filters else "")


def _formula(graph: Graph) -> str:
    tensor = graph.tensors[graph.input]
    if not reads_pixels(graph):
        return f"int8 = round(real / {tensor.scale:.9g}) {_signed(tensor.zero_point)}"
    pairs = set(zip(graph.input_mean, graph.input_std, strict=True))
    if len(pairs) == 1:
        ((mean, std),) = pairs
        offset = tensor.zero_point - mean
        if abs(std * tensor.scale - 1) < 1e-6 and abs(offset - round(offset)) < 1e-6:
            return f"int8 = pixel {_signed(round(offset))}"
    means = ", ".join(f"{mean:.9g}" for mean in graph.input_mean)
    stds = ", ".join(f"{std:.9g}" for std in graph.input_std)
    return (
        f"int8 = round((pixel - mean) / std / {tensor.scale:.9g}) {_signed(tensor.zero_point)}, "
        f"mean ({means}), std ({stds}), of pixels 0..255 for each channel"
    )


def reads_pixels(graph: Graph) -> bool:
    """Whether the input may be an image, and is not known to be none."""
    is_known = FEATURE_INPUTS.items() <= graph.metadata.items()
    return is_image(graph.tensors[graph.input].shape) and not is_known


def real_pixels(graph: Graph) -> str:
    """Return the real values of pixels 0 and 255, ``-1..1``; of each channel where they differ."""
    formula = PixelFormula(graph.input_mean, graph.input_std)
    ends = dict.fromkeys(f"{low:.4g}..{high:.4g}" for low, high in real_ends(formula))
    return ", ".join(ends)


def _signed(value: int) -> str:
    return f"{'-' if value < 0 else '+'} {abs(value)}"
