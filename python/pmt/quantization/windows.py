"""Convolution and pooling sums in NumPy, one kernel tap at a time; shared by float and int8."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Windowed(Protocol):
    """The windows of an op (:class:`pmt.net.graph.Op` and ``FloatOp`` both do)."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int, int, int]


def convolve(x: Array, weights: Array, op: Windowed) -> Array:
    """Sums of a ``conv2d`` without bias: ``(N, H, W, in)`` to ``(N, OH, OW, out)``."""
    total: Array | None = None
    for row, column, tap in taps(x, op, 0):
        term = tap @ weights[:, row, column, :].T
        if total is None:
            total = term
        else:
            total += term
    assert total is not None
    return total


def convolve_depthwise(x: Array, weights: Array, op: Windowed) -> Array:
    """Sums of a ``depthwise_conv2d`` without bias; output ``c`` reads input ``c // multiplier``."""
    multiplier = weights.shape[-1] // x.shape[-1]
    if multiplier > 1:
        x = np.repeat(x, multiplier, axis=-1)
    total: Array | None = None
    term: Array | None = None
    for row, column, tap in taps(x, op, 0):
        if total is None:
            total = tap * weights[row, column]
            term = np.empty_like(total)
        else:
            total += np.multiply(tap, weights[row, column], out=term)
    assert total is not None
    return total


def pool_average(x: Array, op: Windowed) -> Array:
    """Sum of the pixels in each window, by their count: padding is not counted."""
    inside = np.ones((1, *x.shape[1:3], 1), x.dtype)
    total = sum(tap for _, _, tap in taps(x, op, 0))
    count = sum(tap for _, _, tap in taps(inside, op, 0))
    return np.asarray(total / count)


def pool_maximum(x: Array, op: Windowed) -> Array:
    """Greatest pixel of each window; padding never wins."""
    return np.asarray(reduce(np.maximum, (tap for _, _, tap in taps(x, op, -np.inf))))


def pad(x: Array, padding: tuple[int, int, int, int], fill: float) -> Array:
    """Add rows and columns at top, left, bottom, right."""
    if not any(padding):
        return x
    top, left, bottom, right = padding
    return np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)


def taps(x: Array, op: Windowed, fill: float) -> Iterator[tuple[int, int, Array]]:
    """Row and column of each kernel tap, and what it reads: a view of shape (N, OH, OW, C)."""
    padded = pad(x, op.padding, fill)
    rows = (padded.shape[1] - op.kernel[0]) // op.stride[0] + 1
    columns = (padded.shape[2] - op.kernel[1]) // op.stride[1] + 1
    for row in range(op.kernel[0]):
        for column in range(op.kernel[1]):
            yield (
                row,
                column,
                padded[
                    :,
                    row : row + (rows - 1) * op.stride[0] + 1 : op.stride[0],
                    column : column + (columns - 1) * op.stride[1] + 1 : op.stride[1],
                ],
            )
