"""Cross-layer equalization: the channels of an activation share its int8 range more evenly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from pmt._util.arrays import Array, DoubleArray, FloatArray
from pmt._util.checks import check_callable
from pmt.net.float_graph import Bounds, FloatGraph, FloatOp, check_calibration
from pmt.net.graph import channel_shape, is_layer
from pmt.net.ops import DEFINITIONS, SCALABLE_KINDS
from pmt.quantization.float_forward import Progress, float_steps, image_batches, normalize

_LARGEST_FACTOR = 2.0**10
_MARGIN = 1 + 1e-5  # for rounding in float32, where a bound is kept out of reach


@dataclass(frozen=True)
class Equalization:
    """An equalized network, and the changes to it.

    ``pairs`` counts pairs of layers between which some channel was scaled, ``channels`` the
    channels scaled in them, and ``held`` the channels of pairs that were left alone because
    scaling them would change what a bounded activation, such as ReLU6, clips.
    """

    graph: FloatGraph
    pairs: int
    channels: int
    held: int


def equalize(graph: FloatGraph, images: Array, *, progress: Progress | None = None) -> Equalization:
    """Move a positive factor per channel from a layer to the one that reads it.

    Where a layer's output reaches only one other layer, channel ``i`` of the first may be divided
    by ``s_i`` and what the second does with it multiplied by ``s_i``: cross-layer equalization,
    Nagel et al. 2019 (arXiv:1906.04721, section 4.1). The function of the network stays the same
    up to rounding in float32, for every image of pixels 0..255. ReLU and no activation let any
    positive factor through. Through a bounded one (ReLU6) a channel is scaled only if interval
    arithmetic from the pixels on proves that it never reaches the bound, before and after; the
    others are left as they are.

    Weights have a scale per output channel here, so that a factor costs the first layer nothing,
    and a depthwise second layer neither. The activation between gains: it has one scale for all
    its channels.

    Parameters
    ----------
    graph : FloatGraph
        The network. It is not changed.
    images : ndarray of uint8, shape (N, H, W, C)
        Calibration images. The factors come from the largest magnitude ``p_i`` of every channel
        over them: ``s_i = sqrt(p_i / w_i)``, ``w_i`` being the largest weight that the second layer
        has for the channel (the rule of Xiao et al. 2022, arXiv:2211.10438, at one half), and
        ``s_i = p_i`` before a depthwise layer.
    progress : callable, optional
        Called after every batch as ``progress(images_done, images_in_all)``.

    Returns
    -------
    Equalization
        The new network and counts.

    Raises
    ------
    ValueError
        If the graph contradicts itself, or the images do not fit or are too few.
    """
    check_calibration(graph, images)
    check_callable("progress", progress)
    result = replace(graph, ops=[replace(op) for op in graph.ops])
    intervals = channel_intervals(graph, images)
    peaks = _channel_peaks(graph, images, progress)
    scaled, held = [], 0
    for pair in scalable_pairs(graph):
        first, second = result.ops[pair.first], result.ops[pair.second]
        limit = _least_factors(graph, pair, intervals)
        wanted = _peak_factors(peaks[first.output], second)
        bounded = np.clip(wanted, 1 / _LARGEST_FACTOR, _LARGEST_FACTOR)
        factors = np.where(np.isinf(limit), 1.0, np.maximum(bounded, limit))
        _move_factors(first, second, factors)
        scaled.append(int(np.sum(factors != 1.0)))
        held += int(np.sum(np.isinf(limit)))
    return Equalization(result, sum(count > 0 for count in scaled), sum(scaled), held)


class Pair(NamedTuple):
    """Two layers, as positions in the graph's ops."""

    first: int
    second: int


def scalable_pairs(graph: FloatGraph) -> list[Pair]:
    """Find every layer whose output reaches only one other layer.

    Paddings, pools and means may lie between, and a reshape before a fully_connected layer. An
    activation that two ops read, or that is the network's output, belongs to no pair.
    """
    readers: dict[int, list[int]] = {}
    for position, op in enumerate(graph.ops):
        for index in op.inputs:
            readers.setdefault(index, []).append(position)
    pairs = (
        (i, _sole_reader(graph, op, readers)) for i, op in enumerate(graph.ops) if is_layer(op)
    )
    return [Pair(first, second) for first, second in pairs if second is not None]


def _sole_reader(graph: FloatGraph, layer: FloatOp, readers: dict[int, list[int]]) -> int | None:
    tensor, flattened = layer.output, False
    channels = graph.tensors[tensor].channels
    while tensor != graph.output and len(readers.get(tensor, [])) == 1:
        (position,) = readers[tensor]
        op = graph.ops[position]
        if is_layer(op):
            return position if op.kind == "fully_connected" or not flattened else None
        if op.kind == "reshape":
            flattened = flattened or graph.tensors[op.output].channels != channels
        elif op.kind not in SCALABLE_KINDS or flattened or op.activation != "none":
            return None
        tensor = op.output
    return None


@dataclass(frozen=True)
class Interval:
    """Bounds per channel, ``(channels,)`` each: no image leads outside."""

    low: DoubleArray
    high: DoubleArray

    def clipped(self, bounds: tuple[float, float]) -> Interval:
        """Return the interval after an activation with these bounds."""
        return Interval(np.clip(self.low, *bounds), np.clip(self.high, *bounds))

    def with_zero(self) -> Interval:
        """Return the interval widened to hold zero, as padding does."""
        return Interval(np.minimum(self.low, 0.0), np.maximum(self.high, 0.0))


def channel_intervals(graph: FloatGraph, images: Array | None = None) -> dict[int, Interval]:
    """Bound the output of every op before its activation, for any image of pixels 0..255.

    With float32 inputs, which are not pixels, for any within their range: others are clipped to it.
    The intervals are by output tensor. They hold for real arithmetic, and are seldom reached.
    """
    before: dict[int, Interval] = {}
    after = {graph.input: _input_interval(graph, images)}
    for op in graph.ops:
        sources = [after[index] for index in op.inputs]
        channels = graph.tensors[op.output].channels
        before[op.output] = _propagated(op, sources, channels)
        after[op.output] = before[op.output].clipped(op.bounds)
    return before


def _input_interval(graph: FloatGraph, images: Array | None) -> Interval:
    """Return the range of pixels 0..255, or of inputs, per channel of the network's input."""
    channels = graph.tensors[graph.input].channels
    if not graph.reads_pixels:
        low, high = (-np.inf, np.inf) if images is None else (images.min(), images.max())
        return Interval(np.full(channels, min(low, 0.0)), np.full(channels, max(high, 0.0)))
    mean, std = (
        np.resize(np.asarray(values, np.float64), channels)
        for values in (graph.input_mean, graph.input_std)
    )
    ends = np.stack([(0.0 - mean) / std, (255.0 - mean) / std])
    return Interval(ends.min(axis=0), ends.max(axis=0))


def _propagated(op: FloatOp, sources: list[Interval], channels: int) -> Interval:
    x = sources[0]
    forward = DEFINITIONS[op.kind].forward
    if len(sources) > 1 and forward is not None:  # more in is more out, channel by channel
        ends = ([source.low for source in sources], [source.high for source in sources])
        low, high = (forward(op, [v.reshape(1, 1, 1, -1) for v in end]).ravel() for end in ends)
        return Interval(low, high)
    if op.kind == "reshape" and len(x.low) != channels:
        return Interval(np.full(channels, x.low.min()), np.full(channels, x.high.max()))
    if op.kind == "pad":
        return x.with_zero()
    if not is_layer(op):
        return x
    assert op.weights is not None
    weights = _per_output(op, len(x.low))
    if any(op.padding):
        x = x.with_zero()
    bias = 0.0 if op.bias is None else op.bias.astype(np.float64)
    depthwise = op.kind == "depthwise_conv2d"
    repeat, axes = (weights.shape[1] // len(x.low), (0,)) if depthwise else (1, (1, 2))
    products = (weights * np.repeat(x.low, repeat), weights * np.repeat(x.high, repeat))
    low, high = (end(*products).sum(axis=axes) + bias for end in (np.minimum, np.maximum))
    return Interval(low, high)


def _per_output(op: FloatOp, channels: int) -> DoubleArray:
    """Weights as ``(taps, out)`` for depthwise, else ``(out, taps, in)``."""
    assert op.weights is not None
    weights = op.weights.astype(np.float64)
    if op.kind == "depthwise_conv2d":
        return weights.reshape(-1, weights.shape[-1])
    return weights.reshape(len(weights), -1, channels)


def _peak_factors(peaks: DoubleArray, second: FloatOp) -> DoubleArray:
    """Factors that make peaks of the activation and weights of the second layer alike.

    A depthwise layer has a scale per channel, so that only the peaks matter there. The largest
    peak stays what it was, so that channels that cannot be scaled are as large as the others.
    """
    read = np.abs(_by_input(second, len(peaks))).max(axis=(0, 2)).astype(np.float64)
    used = (peaks > 0.0) & (read > 0.0)
    if not used.any():
        return np.ones(len(peaks))
    if second.kind == "depthwise_conv2d":
        factors = np.where(used, peaks, 1.0)
    else:
        factors = np.sqrt(np.where(used, peaks, 1.0) / np.where(used, read, 1.0))
    common = float((peaks[used] / factors[used]).max() / peaks[used].max())
    return np.where(used, factors * common, 1.0)


def _move_factors(first: FloatOp, second: FloatOp, factors: DoubleArray) -> None:
    """Divide the first layer's output channels by factors, and have the second multiply."""
    assert first.weights is not None
    assert second.weights is not None
    if np.all(factors == 1.0):
        return
    divisors = factors.reshape(channel_shape(first, first.weights.ndim))
    first.weights = (first.weights / divisors).astype(np.float32)
    if first.bias is not None:
        first.bias = (first.bias / factors).astype(np.float32)
    scaled = _by_input(second, len(factors)) * factors[:, None]
    second.weights = scaled.reshape(second.weights.shape).astype(np.float32)


def _by_input(op: FloatOp, channels: int) -> FloatArray:
    """Weights with the input channel on axis 1, and its outputs of a depthwise layer on axis 2.

    The channel is the last axis of others, and of a flattened input the one that runs fastest.
    """
    assert op.weights is not None
    multiplier = op.weights.shape[-1] // channels if op.kind == "depthwise_conv2d" else 1
    return op.weights.reshape(-1, channels, multiplier)


def _least_factors(graph: FloatGraph, pair: Pair, intervals: dict[int, Interval]) -> DoubleArray:
    """Least factors that keep the activation's bounds out of reach; infinite where one is not."""
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
    graph: FloatGraph, images: Array, progress: Progress | None
) -> dict[int, DoubleArray]:
    """Largest magnitude of every channel of every layer's output."""
    peaks: dict[int, DoubleArray] = {}
    for part in image_batches(graph, images, progress):
        for step in float_steps(graph, normalize(graph, part)):
            if is_layer(step.op):
                rows = step.output.reshape(-1, step.output.shape[-1])
                found = np.maximum(rows.max(axis=0), -rows.min(axis=0)).astype(np.float64)
                peaks[step.op.output] = np.maximum(peaks.get(step.op.output, 0.0), found)
    return peaks
