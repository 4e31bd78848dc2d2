"""The range of every activation over calibration images, and of an output whose logits changed."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from pmt import _core
from pmt._util.arrays import Array, DoubleArray, FloatArray, Int64Array
from pmt._util.checks import check_callable, checked_word
from pmt.model import Model
from pmt.model.model import check_model
from pmt.net.float_graph import FloatGraph, check_images
from pmt.quantization.float_forward import Progress, float_steps, image_batches, normalize

Range = tuple[float, float]
RangeMethod = Literal["minmax", "mse"]

RANGE_METHODS: tuple[RangeMethod, ...] = get_args(RangeMethod)
INT8_STEPS = 255
BINS = 16384
_CHUNK = 2**18
# Fractions of the whole range that an end may keep. Below 1/16, an int8 step is as narrow as two
# bins of the histogram, which then no longer shows the error of rounding.
_COARSE = np.arange(8, 129, 2) / 128
_FINE = np.arange(-3, 4) / 512
_SWEEPS = 4


def activation_ranges(
    graph: FloatGraph,
    images: Array,
    *,
    method: RangeMethod = "minmax",
    progress: Progress | None = None,
) -> list[Range]:
    """Measure the range of every activation that int8 should cover.

    Images run in batches of at most 64, fewer where activations are large; memory does not grow
    with their number.

    Parameters
    ----------
    graph : FloatGraph
        The network.
    images : ndarray of uint8, shape (N, H, W, C)
        Calibration images, pixels 0..255.
    method : {"minmax", "mse"}
        ``"minmax"``: the lowest and highest value. ``"mse"``: the range whose int8 values have the
        least mean square error, on a histogram of 8,192 to 16,384 bins.
    progress : callable, optional
        Called after every batch as ``progress(images_done, images_in_all)``.

    Returns
    -------
    list of (float, float)
        Per tensor of the graph. Zero is always inside: padding and ReLU need it exactly.

    Raises
    ------
    ValueError
        If the method is unknown, the images do not fit, or an activation is not finite.
    """
    check_method(method)
    check_images(graph, images)
    check_callable("progress", progress)
    observers = [Extremes() if method == "minmax" else Histogram() for _ in graph.tensors]
    for part in image_batches(graph, images, progress):
        inputs = normalize(graph, part)
        _observe(graph, observers, graph.input, inputs)
        for step in float_steps(graph, inputs):
            _observe(graph, observers, step.op.output, step.output)
    return [observer.range() for observer in observers]


def check_method(method: str) -> None:
    """Raise ValueError if the method is unknown."""
    checked_word("ranges", method, RANGE_METHODS)


class Extremes:
    """Minimum and maximum only."""

    def __init__(self) -> None:
        self.low = math.inf
        self.high = -math.inf

    def add(self, values: FloatArray) -> bool:
        """Take in values of any shape; false, and nothing is, if one is not finite."""
        low, high = float(values.min()), float(values.max())
        finite = math.isfinite(low) and math.isfinite(high)
        if finite:
            self.low, self.high = min(self.low, low), max(self.high, high)
        return finite

    def range(self) -> Range:
        """Return the range that int8 should cover."""
        return min(self.low, 0.0), max(self.high, 0.0)


def _observe(graph: FloatGraph, observers: list[Extremes], index: int, values: FloatArray) -> None:
    if not observers[index].add(values):
        raise ValueError(
            f"activation {graph.tensors[index].name!r} is not finite on the calibration images: "
            "check the float weights and input_std"
        )


def scale_and_zero_point(low: float, high: float) -> tuple[float, int]:
    """Spread [low, high] over -128..127, zero met exactly; ValueError if no float32 scale does."""
    if high == low:
        return 1.0, 0
    # At the float32 precision of the file, so that a saved network is the same network.
    scale = float(np.float32((high - low) / INT8_STEPS))
    if not 0.0 < scale < np.inf:
        raise ValueError(
            f"an activation ranges from {low} to {high}, which no float32 scale covers: "
            "check the float weights"
        )
    return scale, int(np.clip(np.rint(-128 - low / scale), -128, 127))


class Histogram(Extremes):
    """Counts of values in at most 16,384 bins of equal width.

    The width is a power of two and zero is an edge, so that wider bins are unions of narrower
    ones: where the values outgrow the bins, these are merged in pairs and no count is spread. The
    result depends on the values alone, not on the batches that they come in. Exact zeros, of which
    ReLU makes many, are left out: every range holds zero exactly.

    One pass with bins that widen is how PyTorch's ``HistogramObserver`` and the histogram
    calibrators of TensorRT's toolkits collect an activation, too.
    """

    def __init__(self) -> None:
        super().__init__()
        self._counts = np.zeros(0, np.int64)
        self._first = 0  # index of the first bin: it holds [first, first + 1) * width
        self._exponent: int | None = None

    @property
    def width(self) -> float:
        """Width of a bin; 0 as long as all values are zero."""
        return 0.0 if self._exponent is None else math.ldexp(1.0, self._exponent)

    def add(self, values: FloatArray) -> bool:
        """Count values of any shape; false, and nothing is counted, if one is not finite."""
        if not super().add(values):
            return False
        zeros, flat = values.size - int(np.count_nonzero(values)), values.reshape(-1)
        if zeros == values.size:
            return True
        self._widen(_exponent(self.low, self.high))
        first = math.floor(float(values.min()) / self.width)
        counts = np.zeros(math.floor(float(values.max()) / self.width) - first + 1, np.int64)
        for begin in range(0, len(flat), _CHUNK):
            bins = np.floor(flat[begin : begin + _CHUNK] * np.float64(1.0 / self.width))
            counts += np.bincount(bins.astype(np.int64) - first, minlength=len(counts))
        if zeros:
            counts[-first] -= zeros
        self._merge(first, counts)
        return True

    def range(self) -> Range:
        """Return the range of least error."""
        return least_error_range(self)

    def bins(self) -> tuple[DoubleArray, DoubleArray]:
        """Return lower edges and counts of the bins that are not empty."""
        filled = np.flatnonzero(self._counts)
        edges = (self._first + filled).astype(np.float64) * self.width
        return edges, self._counts[filled].astype(np.float64)

    def _widen(self, exponent: int) -> None:
        if self._exponent is None:
            self._exponent = exponent
            return
        for _ in range(exponent - self._exponent):
            odd = self._first % 2
            counts = np.pad(self._counts, (odd, (len(self._counts) + odd) % 2))
            self._counts = counts.reshape(-1, 2).sum(axis=1)
            self._first //= 2
        self._exponent = max(self._exponent, exponent)

    def _merge(self, first: int, counts: Int64Array) -> None:
        if len(self._counts) == 0:
            self._first, self._counts = first, counts
            return
        begin = min(first, self._first)
        end = max(first + len(counts), self._first + len(self._counts))
        merged = np.zeros(end - begin, np.int64)
        for start, part in ((first, counts), (self._first, self._counts)):
            merged[start - begin : start - begin + len(part)] += part
        self._first, self._counts = begin, merged


def _exponent(low: float, high: float) -> int:
    """Least exponent of a width with which ``BINS`` bins reach over zero and [low, high]."""
    low, high = min(low, 0.0), max(high, 0.0)
    exponent = math.frexp((high - low) / BINS)[1] - 1
    while _bin_count(low, high, exponent) > BINS:
        exponent += 1
    return exponent


def _bin_count(low: float, high: float, exponent: int) -> int:
    width = math.ldexp(1.0, exponent)
    return math.floor(high / width) - math.floor(low / width) + 1


def least_error_range(histogram: Histogram) -> Range:
    """Search the range whose int8 rounding and clipping make the least mean square error.

    Clipping outliers costs a large error for few values; not clipping them, a wide step for all.
    As in PyTorch's ``HistogramObserver`` the search is over the ends of the range, on the
    histogram. Here each end in turn is searched on a grid, with the other one held, until neither
    moves, and then on a finer grid; the error is that of the very scale and zero point that the
    range gives.

    The range lies within minimum and maximum of the values, and zero is inside.
    """
    low, high = min(histogram.low, 0.0), max(histogram.high, 0.0)
    if low == high:
        return low, high
    edges, counts = histogram.bins()
    centers = edges + histogram.width / 2

    def error(fractions: tuple[float, float]) -> float:
        return _squared_error(centers, counts, (low * fractions[0], high * fractions[1]))

    best = (1.0, 1.0)
    for grid in (lambda _: _COARSE, lambda middle: np.clip(middle + _FINE, _COARSE[0], 1.0)):
        best = _descend(error, best, grid, moves=(low < 0.0, high > 0.0))
    return low * best[0], high * best[1]


def _descend(
    error: Callable[[tuple[float, float]], float],
    best: tuple[float, float],
    grid: Callable[[float], DoubleArray],
    *,
    moves: tuple[bool, bool],
) -> tuple[float, float]:
    """Lower the error by one end after the other, until none of them moves."""
    least = error(best)
    for _ in range(_SWEEPS):
        before = best
        for end in (0, 1):
            for fraction in grid(best[end]) if moves[end] else ():
                candidate = (float(fraction), best[1]) if end == 0 else (best[0], float(fraction))
                found = error(candidate)
                if found < least:
                    least, best = found, candidate
        if best == before:
            break
    return best


def _squared_error(values: DoubleArray, counts: DoubleArray, bounds: Range) -> float:
    scale, zero_point = scale_and_zero_point(*bounds)
    steps = np.clip(np.rint(values / scale), -128 - zero_point, 127 - zero_point)
    return float(counts @ (values - steps * scale) ** 2)


def cover_logits(model: Model, images: Array, *, threads: int = 0) -> Model:
    """Return a copy of a model whose int8 output holds the logits of these images.

    pmt reads the sums of a linear last layer, and programs that run a ``.tflite`` or ``.onnx`` file
    its int8 output, where a logit beyond the largest value is cut, and small ones are equal.
    Weights and logits stay as they are.

    Parameters
    ----------
    model : Model
        A model with a linear last layer.
    images : ndarray, shape (N, height, width, channels)
        Images as :meth:`pmt.Model.logits` takes them, best those that the model was trained on.
    threads : int
        Threads to use, 0 for all; the result does not depend on it.

    Returns
    -------
    Model
        A model with another scale and zero point of its output, where its own does not suffice.

    Raises
    ------
    ValueError, TypeError
        If the model's last layer is not linear, or the images do not fit.
    """
    check_model(model)
    if not model.core.has_linear_head:
        raise ValueError(
            "model: cover_logits() needs a linear last layer; the int8 output of this one is what "
            "pmt reads, too"
        )
    logits = model.logits(images, threads=threads)
    fitted = model.copy()
    fit_outputs(fitted, {model.core.output_tensor: (float(logits.min()), float(logits.max()))})
    return fitted


def fit_outputs(model: Model, ranges: Mapping[int, Range], *, narrow: bool = True) -> None:
    """Let tensors, by index, hold values from a lowest to a highest, in place.

    A tensor keeps a range that suffices, unless it may be made narrower and the values use less
    than a quarter of it. Another one has an eighth more room on the sides that change.
    """
    tensors = model.core.tensors()
    found = {
        i: _fitted(tensors[i], (min(low, 0.0), max(high, 0.0)), narrow)
        for i, (low, high) in ranges.items()
    }
    if not any(found.values()):
        return
    graph = model.to_graph()
    for index, bounds in found.items():
        if bounds is not None:
            scale, zero_point = scale_and_zero_point(*bounds)
            graph.tensors[index] = replace(
                graph.tensors[index],
                scale=float(np.clip(scale, *_core.TENSOR_SCALES)),
                zero_point=max(zero_point, -127),  # the core takes -128 for that of a ReLU
            )
    model.core = Model.from_graph(graph).core


def _fitted(tensor: Mapping[str, Any], values: Range, narrow: bool) -> Range | None:
    """Return the range that a tensor gets for values around zero; None where its own suffices."""
    scale, (low, high) = tensor["scale"], values
    lowest, highest = (scale * (end - tensor["zero_point"]) for end in (-128, 127))
    if narrow and 0 < 4 * (high - low) < highest - lowest:
        return 1.125 * low, 1.125 * high
    below, above = low < lowest - scale / 2, high > highest + scale / 2  # what rounding reaches
    if not below and not above:
        return None
    return 1.125 * low if below else lowest, 1.125 * high if above else highest
