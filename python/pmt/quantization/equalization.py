"""Cross-layer equalisation: the channels of an activation share its int8 range more evenly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.net.float_consistency import check_calibration, check_float_graph
from pmt.net.float_graph import LAYER_KINDS, Bounds, FloatGraph
from pmt.quantization.channel_factors import DoubleArray, move_factors, peak_factors, weight_factors
from pmt.quantization.float_forward import float_steps, normalise
from pmt.quantization.intervals import Interval, channel_intervals
from pmt.quantization.liveness import batch_size
from pmt.quantization.ranges import Progress
from pmt.quantization.scalable_pairs import Pair, scalable_pairs

_SWEEPS = 50
_SETTLED = 1e-3
_LARGEST_FACTOR = 2.0**10
_MARGIN = 1 + 1e-5  # for rounding in float32, where a bound is kept out of reach


@dataclass(frozen=True)
class Equalisation:
    """An equalised network, and what was done to it.

    ``pairs`` counts pairs of layers between which some channel was scaled, ``channels`` the
    channels scaled in them, and ``held`` the channels of pairs that were left alone because
    scaling them would change what a bounded activation, such as ReLU6, clips.
    """

    graph: FloatGraph
    pairs: int
    channels: int
    held: int


def equalize(
    graph: FloatGraph,
    images: npt.NDArray[Any] | None = None,
    *,
    progress: Progress | None = None,
) -> Equalisation:
    """Move a positive factor per channel from a layer to the one that reads it.

    Where a layer's output reaches one other layer alone, channel ``i`` of the first may be divided
    by ``s_i`` and what the second does with it multiplied by ``s_i``: cross-layer equalisation,
    Nagel et al. 2019 (arXiv:1906.04721, section 4.1). The function of the network stays the same
    up to rounding in float32, for every image of pixels 0..255. ReLU and no activation let any
    positive factor through. Through a bounded one (ReLU6) a channel is scaled only if interval
    arithmetic from the pixels on proves that it never reaches the bound, before and after; the
    others are left as they are.

    Weights have a scale per output channel here, so that a factor costs the first layer nothing,
    and a depthwise second layer neither. What gains is the activation between, which has one scale
    for all its channels.

    Parameters
    ----------
    graph : FloatGraph
        The network. It is not changed.
    images : ndarray of uint8, shape (N, H, W, C), optional
        With calibration images the factors come from the largest magnitude ``p_i`` of every
        channel over them: ``s_i = sqrt(p_i / w_i)``, ``w_i`` being the largest weight that the
        second layer has for the channel (the rule of Xiao et al. 2022, arXiv:2211.10438, at
        one half), and ``s_i = p_i`` before a depthwise layer. Without images they come from the
        weights of both layers alone, ``s_i = sqrt(v_i / w_i)``, as in the paper of Nagel et al.

    Returns
    -------
    Equalisation
        The new network and counts.

    Raises
    ------
    ValueError
        The graph contradicts itself, or the images do not fit or are too few.
    """
    if images is None:
        check_float_graph(graph)
    else:
        check_calibration(graph, images)
    result = replace(graph, ops=[replace(op) for op in graph.ops])
    pairs = scalable_pairs(graph)
    intervals = channel_intervals(graph)
    limits = {pair: _least_factors(graph, pair, intervals) for pair in pairs}
    peaks = None if images is None else _channel_peaks(graph, images, progress)
    moved = {pair: np.ones(len(limits[pair])) for pair in pairs}
    for _ in range(_SWEEPS if peaks is None else 1):
        largest = 0.0
        for pair in pairs:
            factors = _factors(result, pair, peaks, limits[pair], moved[pair])
            move_factors(result.ops[pair.first], result.ops[pair.second], factors)
            moved[pair] *= factors
            largest = max(largest, float(np.abs(np.log(factors)).max()))
        if largest < _SETTLED:
            break
    scaled = [int(np.sum(factors != 1.0)) for factors in moved.values()]
    return Equalisation(
        graph=result,
        pairs=sum(count > 0 for count in scaled),
        channels=sum(scaled),
        held=sum(int(np.sum(np.isinf(limit))) for limit in limits.values()),
    )


def _factors(
    graph: FloatGraph,
    pair: Pair,
    peaks: dict[int, DoubleArray] | None,
    limit: DoubleArray,
    moved: DoubleArray,
) -> DoubleArray:
    """Factors of one pair; 1 where a channel is held or one of the two layers ignores it."""
    first, second = graph.ops[pair.first], graph.ops[pair.second]
    if peaks is None:
        factors = weight_factors(first, second)
    else:
        factors = peak_factors(peaks[first.output], second)
    bounded = np.clip(moved * factors, 1 / _LARGEST_FACTOR, _LARGEST_FACTOR)
    return np.where(np.isinf(limit), 1.0, np.maximum(bounded, limit) / moved)


def _least_factors(graph: FloatGraph, pair: Pair, intervals: dict[int, Interval]) -> DoubleArray:
    """Least factor of every channel that keeps its activation's bounds out of reach.

    Infinite where a channel may reach a bound as it is, and so must not be scaled.
    """
    op = graph.ops[pair.first]
    reach = intervals[op.output]
    return np.maximum(
        _least_below(op.bounds, reach),
        _least_below((-op.bounds[1], -op.bounds[0]), Interval(-reach.high, -reach.low)),
    )


def _least_below(bounds: Bounds, reach: Interval) -> DoubleArray:
    """Least factors by which ``reach`` is divided to stay below the upper bound."""
    high = bounds[1]
    if high in (0.0, np.inf):  # a bound at zero is one for any factor
        return np.zeros(len(reach.high))
    if high < 0.0:
        return np.full(len(reach.high), np.inf)
    least = np.maximum(reach.high, 0.0) * _MARGIN / high
    return np.where(least > 1.0, np.inf, least)


def _channel_peaks(
    graph: FloatGraph, images: npt.NDArray[Any], progress: Progress | None
) -> dict[int, DoubleArray]:
    """Largest magnitude of every channel of every layer's output."""
    peaks: dict[int, DoubleArray] = {}
    batch = batch_size(graph)
    for begin in range(0, len(images), batch):
        part = images[begin : begin + batch]
        for step in float_steps(graph, normalise(graph, part)):
            if step.op.kind in LAYER_KINDS:
                rows = step.output.reshape(-1, step.output.shape[-1])
                found = np.maximum(rows.max(axis=0), -rows.min(axis=0)).astype(np.float64)
                peaks[step.op.output] = np.maximum(peaks.get(step.op.output, 0.0), found)
        if progress is not None:
            progress(begin + len(part), len(images))
    return peaks
