"""Convolution and pooling sums in NumPy, one kernel tap at a time; shared by float and int8."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Windowed(Protocol):
    """What an op says about its windows (:class:`pmt.graph.Op` and ``FloatOp`` both do)."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int, int, int]


def convolve(x: Array, weights: Array, op: Windowed) -> Array:
    """Sums of a ``conv2d`` without bias: ``(N, H, W, in)`` to ``(N, OH, OW, out)``."""
    total: Array | None = None
    for row, column, tap in _taps(x, op, 0):
        term = tap @ weights[:, row, column, :].T
        total = term if total is None else total + term
    assert total is not None
    return total


def convolve_depthwise(x: Array, weights: Array, op: Windowed) -> Array:
    """Sums of a ``depthwise_conv2d`` without bias; output ``c`` reads input ``c // multiplier``."""
    expanded = np.repeat(x, weights.shape[-1] // x.shape[-1], axis=-1)
    taps = _taps(expanded, op, 0)
    return np.asarray(sum(tap * weights[row, column] for row, column, tap in taps))


def pool_average(x: Array, op: Windowed) -> Array:
    """Sum of the pixels in each window, by their count: padding is not counted."""
    inside = np.ones((1, *x.shape[1:3], 1), x.dtype)
    total = sum(tap for _, _, tap in _taps(x, op, 0))
    count = sum(tap for _, _, tap in _taps(inside, op, 0))
    return np.asarray(total / count)


def pool_maximum(x: Array, op: Windowed) -> Array:
    """Greatest pixel of each window; padding never wins."""
    taps = [tap for _, _, tap in _taps(x, op, -np.inf)]
    return np.asarray(np.max(taps, axis=0))


def pad(x: Array, padding: tuple[int, int, int, int], fill: float) -> Array:
    """Add rows and columns at top, left, bottom, right."""
    top, left, bottom, right = padding
    return np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)


def _taps(x: Array, op: Windowed, fill: float) -> Iterator[tuple[int, int, Array]]:
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
