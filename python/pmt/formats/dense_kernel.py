"""Grouped and dilated convolutions as dense ones, with zeros.

Image ops have neither groups nor dilation. The zeros cost multiplications, and training may change
them as any other weight: a trained network is a dense one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["dense_kernel", "kernel_extent", "spread_depthwise"]

Int8Array = npt.NDArray[np.int8]


def kernel_extent(kernel: tuple[int, int], dilation: tuple[int, int]) -> tuple[int, int]:
    """Return the height and width that a dilated kernel spans."""
    return (kernel[0] - 1) * dilation[0] + 1, (kernel[1] - 1) * dilation[1] + 1


def dense_kernel(
    weights: npt.NDArray[Any], groups: int, dilation: tuple[int, int] = (1, 1)
) -> Int8Array:
    """Spread the weights of a convolution over all input channels and its dilation.

    Parameters
    ----------
    weights : ndarray of int8, shape (out, height, width, in / groups)
        The stored weights.
    groups : int
        Divides ``out``.
    dilation : tuple of int
        Steps between rows and between columns.

    Returns
    -------
    ndarray of int8, shape (out, extent height, extent width, in)
        A copy.
    """
    out, height, width, inner = weights.shape
    if groups == 1 and dilation == (1, 1):
        return weights.astype(np.int8)
    extent = kernel_extent((height, width), dilation)
    result = np.zeros((out, *extent, inner * groups), np.int8)
    for group in range(groups):
        outputs = slice(group * out // groups, (group + 1) * out // groups)
        inputs = slice(group * inner, (group + 1) * inner)
        result[outputs, :: dilation[0], :: dilation[1], inputs] = weights[outputs]
    return result


def spread_depthwise(weights: npt.NDArray[Any], dilation: tuple[int, int]) -> Int8Array:
    """Spread depthwise weights (height, width, out) over their dilation; return a copy."""
    height, width, out = weights.shape
    result = np.zeros((*kernel_extent((height, width), dilation), out), np.int8)
    result[:: dilation[0], :: dilation[1]] = weights
    return result
