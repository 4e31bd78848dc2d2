"""The range of every activation over calibration images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from pmt.net.float_consistency import check_images
from pmt.net.float_graph import FloatGraph
from pmt.quantization.affine import Range
from pmt.quantization.float_forward import float_steps, normalise
from pmt.quantization.histogram import FloatArray, Histogram
from pmt.quantization.least_error import least_error_range
from pmt.quantization.liveness import batch_size

RangeMethod = Literal["minmax", "percentile", "mse"]
Progress = Callable[[int, int], None]

RANGE_METHODS: tuple[RangeMethod, ...] = get_args(RangeMethod)
DEFAULT_PERCENTILE = 99.99


def activation_ranges(
    graph: FloatGraph,
    images: npt.NDArray[Any],
    *,
    method: RangeMethod = "minmax",
    percentile: float | None = None,
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
    method : {"minmax", "percentile", "mse"}
        ``"minmax"``: the lowest and highest value. ``"percentile"``: the percentiles
        ``100 - percentile`` and ``percentile`` of all values. ``"mse"``: the range whose int8
        values have the least mean square error. The latter two work on a histogram of 8,192 to
        16,384 bins.
    percentile : float, optional
        For ``"percentile"`` alone: above 50 and at most 100; 99.99 by default.
    progress : callable, optional
        Called after every batch as ``progress(images_done, images_in_all)``.

    Returns
    -------
    list of (float, float)
        Per tensor of the graph. Zero is always inside: padding and ReLU need it exactly.

    Raises
    ------
    ValueError
        The method is unknown, the percentile is out of range or for another method, the images do
        not fit, or an activation is not finite.
    """
    check_method(method, percentile)
    check_images(graph, images)
    observers = [_Extremes() if method == "minmax" else Histogram() for _ in graph.tensors]
    batch = batch_size(graph)
    for first in range(0, len(images), batch):
        inputs = normalise(graph, images[first : first + batch])
        _observe(graph, observers, graph.input, inputs)
        for step in float_steps(graph, inputs):
            _observe(graph, observers, step.op.output, step.output)
        if progress is not None:
            progress(min(first + batch, len(images)), len(images))
    return [_range(observer, method, percentile) for observer in observers]


def check_method(method: str, percentile: float | None) -> None:
    """Raise ValueError if the method is unknown, or the percentile out of range or not for it."""
    if method not in RANGE_METHODS:
        raise ValueError(
            f"ranges {method!r} are unknown: use one of {', '.join(map(repr, RANGE_METHODS))}"
        )
    if percentile is None:
        return
    if method != "percentile":
        raise ValueError(
            f"percentile is {percentile}, but the ranges are {method!r}: leave it out, or use the "
            "ranges 'percentile'"
        )
    if not 50.0 < percentile <= 100.0:
        raise ValueError(
            f"percentile is {percentile}, but must be above 50 and at most 100: "
            "use 100 for minimum and maximum, 99.99 to cut outliers"
        )


class _Extremes:
    """Minimum and maximum alone."""

    def __init__(self) -> None:
        self.low = np.inf
        self.high = -np.inf

    def add(self, values: FloatArray) -> bool:
        low, high = float(values.min()), float(values.max())
        self.low, self.high = min(self.low, low), max(self.high, high)
        return bool(np.isfinite(low) and np.isfinite(high))


def _observe(
    graph: FloatGraph, observers: list[_Extremes | Histogram], index: int, values: FloatArray
) -> None:
    if not observers[index].add(values):
        raise ValueError(
            f"activation {graph.tensors[index].name!r} is not finite on the calibration images: "
            "check the float weights and input_std"
        )


def _range(observer: _Extremes | Histogram, method: RangeMethod, percentile: float | None) -> Range:
    low, high = observer.low, observer.high
    if isinstance(observer, Histogram):
        if method == "mse":
            return least_error_range(observer)
        share = (DEFAULT_PERCENTILE if percentile is None else percentile) / 100.0
        low, high = observer.quantile(1.0 - share), observer.quantile(share)
    return min(low, 0.0), max(high, 0.0)
