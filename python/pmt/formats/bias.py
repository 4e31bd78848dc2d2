"""Biases for engines that add them to the accumulator in int32."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pmt.net.graph import Op, Tensor

__all__ = ["bounded_bias"]

_LOWEST, _HIGHEST = -(2**31), 2**31 - 1


def bounded_bias(op: Op, source: Tensor) -> npt.NDArray[np.int32]:
    """Return a layer's biases, moved only where accumulator plus bias could leave int32.

    pmt adds the two in float32. Other engines add them in int32, where the bias of a dead channel,
    at the end of the range, would wrap. The largest change is the largest sum that the channel's
    weights can make.

    Parameters
    ----------
    op : Op
        The layer; without biases they are zeros.
    source : Tensor
        Its input.

    Returns
    -------
    ndarray of int32, shape (out,)
        The biases.
    """
    assert op.weights is not None
    out = op.weights.shape[-1 if op.kind == "depthwise_conv2d" else 0]
    bias = np.zeros(out, np.int64) if op.bias is None else op.bias.astype(np.int64)
    axis = -1 if op.kind == "depthwise_conv2d" else 0
    sizes = np.abs(np.moveaxis(op.weights, axis, 0).reshape(out, -1).astype(np.int64)).sum(axis=1)
    reach = sizes * max(127 - source.zero_point, 128 + source.zero_point)
    return np.clip(bias, _LOWEST + reach, _HIGHEST - reach).astype(np.int32)
