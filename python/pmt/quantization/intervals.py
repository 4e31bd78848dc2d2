"""What every channel of an activation can be at all: interval arithmetic from the pixels on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pmt.net.float_graph import LAYER_KINDS, FloatGraph, FloatOp

DoubleArray = npt.NDArray[np.float64]


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


def channel_intervals(graph: FloatGraph) -> dict[int, Interval]:
    """Bound what every op gives before its activation, for any image of pixels 0..255.

    Returns
    -------
    dict of int to Interval
        By output tensor. The bounds hold for real arithmetic, and are seldom reached.
    """
    before: dict[int, Interval] = {}
    after = {graph.input: pixel_interval(graph)}
    for op in graph.ops:
        sources = [after[index] for index in op.inputs]
        channels = graph.tensors[op.output].channels
        before[op.output] = _propagated(op, sources, channels)
        after[op.output] = before[op.output].clipped(op.bounds)
    return before


def pixel_interval(graph: FloatGraph) -> Interval:
    """Return what pixels 0..255 become, per channel of the network's input."""
    channels = graph.tensors[graph.input].channels
    mean, std = (
        np.resize(np.asarray(values, np.float64), channels)
        for values in (graph.input_mean, graph.input_std)
    )
    ends = np.stack([(0.0 - mean) / std, (255.0 - mean) / std])
    return Interval(ends.min(axis=0), ends.max(axis=0))


def _propagated(op: FloatOp, sources: list[Interval], channels: int) -> Interval:
    x = sources[0]
    if op.kind == "add":
        return Interval(x.low + sources[1].low, x.high + sources[1].high)
    if op.kind == "reshape" and len(x.low) != channels:
        return Interval(np.full(channels, x.low.min()), np.full(channels, x.high.max()))
    if op.kind == "pad":
        return x.with_zero()
    if op.kind not in LAYER_KINDS:
        return x
    assert op.weights is not None
    weights = _per_output(op, len(x.low))
    if any(op.padding):
        x = x.with_zero()
    bias = 0.0 if op.bias is None else op.bias.astype(np.float64)
    if op.kind == "depthwise_conv2d":
        repeat = weights.shape[1] // len(x.low)
        low, high = np.repeat(x.low, repeat), np.repeat(x.high, repeat)
        products = (weights * low, weights * high)
        return Interval(
            np.minimum(*products).sum(axis=0) + bias, np.maximum(*products).sum(axis=0) + bias
        )
    products = (weights * x.low, weights * x.high)
    return Interval(
        np.minimum(*products).sum(axis=(1, 2)) + bias, np.maximum(*products).sum(axis=(1, 2)) + bias
    )


def _per_output(op: FloatOp, channels: int) -> DoubleArray:
    """Weights as ``(taps, out)`` for depthwise, else ``(out, taps, in)``."""
    assert op.weights is not None
    weights = op.weights.astype(np.float64)
    if op.kind == "depthwise_conv2d":
        return weights.reshape(-1, weights.shape[-1])
    return weights.reshape(len(weights), -1, channels)
