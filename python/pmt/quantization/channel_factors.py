"""Factors per channel between two layers: which to choose, and how to move them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pmt.net.float_graph import FloatOp

DoubleArray = npt.NDArray[np.float64]


def weight_factors(first: FloatOp, second: FloatOp) -> DoubleArray:
    """Factors that make the largest weights of both layers alike, channel by channel.

    The first layer's bias counts as one of its weights: a dead channel has none to speak of but a
    bias, which a factor from its weights alone would blow up, and the activation's range with it.
    """
    given = _largest_given(first)
    if first.bias is not None:
        given = np.maximum(given, np.abs(first.bias))
    read = _largest_read(second, len(given))
    return _root_of_ratio(given, read)


def peak_factors(peaks: DoubleArray, second: FloatOp) -> DoubleArray:
    """Factors that make peaks of the activation and weights of the second layer alike.

    A depthwise layer has a scale per channel, so that there the peaks alone matter. The largest
    peak stays what it was, so that channels that cannot be scaled are as large as the others.
    """
    read = _largest_read(second, len(peaks))
    used = (peaks > 0.0) & (read > 0.0)
    if not used.any():
        return np.ones(len(peaks))
    if second.kind == "depthwise_conv2d":
        factors = np.where(used, peaks, 1.0)
    else:
        factors = _root_of_ratio(peaks, read)
    common = float((peaks[used] / factors[used]).max() / peaks[used].max())
    return np.where(used, factors * common, 1.0)


def move_factors(first: FloatOp, second: FloatOp, factors: DoubleArray) -> None:
    """Divide the first layer's output channels by factors, and have the second multiply."""
    assert first.weights is not None
    assert second.weights is not None
    if np.all(factors == 1.0):
        return
    shape = (-1,) if first.kind == "depthwise_conv2d" else (-1, *[1] * (first.weights.ndim - 1))
    first.weights = (first.weights / factors.reshape(shape)).astype(np.float32)
    if first.bias is not None:
        first.bias = (first.bias / factors).astype(np.float32)
    if second.kind == "depthwise_conv2d":
        multiplier = second.weights.shape[-1] // len(factors)
        second.weights = (second.weights * np.repeat(factors, multiplier)).astype(np.float32)
    else:
        # The channel is the last axis, and of a flattened input the one that runs fastest.
        rows = second.weights.reshape(-1, len(factors)) * factors
        second.weights = rows.reshape(second.weights.shape).astype(np.float32)


def _largest_given(op: FloatOp) -> DoubleArray:
    """Largest magnitude of the weights of every output channel."""
    assert op.weights is not None
    axis = op.weights.ndim - 1 if op.kind == "depthwise_conv2d" else 0
    rows = np.moveaxis(np.abs(op.weights), axis, 0).reshape(op.weights.shape[axis], -1)
    return np.asarray(rows.max(axis=1), np.float64)


def _largest_read(op: FloatOp, channels: int) -> DoubleArray:
    """Largest magnitude of the weights that read every input channel."""
    assert op.weights is not None
    weights = np.abs(op.weights).astype(np.float64)
    if op.kind == "depthwise_conv2d":
        weights = weights.reshape(-1, channels, weights.shape[-1] // channels)
        return np.asarray(weights.max(axis=(0, 2)))
    return np.asarray(weights.reshape(-1, channels).max(axis=0))


def _root_of_ratio(given: DoubleArray, read: DoubleArray) -> DoubleArray:
    used = (given > 0.0) & (read > 0.0)
    return np.asarray(np.sqrt(np.where(used, given, 1.0) / np.where(used, read, 1.0)))
