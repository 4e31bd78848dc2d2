"""A 1x1 depthwise layer that maps every channel on its own: real y = factor * x + offset.

Image ops cannot change a tensor's quantisation or add a constant; this layer does both. A weight of
64 with scale ``|factor| / 64`` is exact where the factor is 1, since 64 is a power of two, and lets
the int32 bias hold the offset to 1/64 of an input step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.net.graph import Tensor

__all__ = ["channelwise_layer"]

_WEIGHT = 64


def channelwise_layer(
    source: Tensor,
    factor: float | npt.NDArray[np.float64] = 1.0,
    offset: float | npt.NDArray[np.float64] = 0.0,
) -> dict[str, Any]:
    """Return weights, bias and weight scales of the layer.

    Parameters
    ----------
    source : Tensor
        What the layer reads.
    factor, offset : float or ndarray of float64, shape (channels,)
        In real units. Factor 1 and offset 0 requantise.

    Returns
    -------
    dict
        ``weights``, ``bias`` and ``weight_scales`` of a ``depthwise_conv2d`` op.

    Raises
    ------
    ValueError
        If an offset does not fit the int32 bias, or a factor is not finite.
    """
    factors = np.broadcast_to(np.asarray(factor, np.float64), (source.channels,))
    offsets = np.broadcast_to(np.asarray(offset, np.float64), (source.channels,))
    scales = np.where(factors == 0, 1.0, np.abs(factors)) / _WEIGHT
    bias = np.rint(offsets / (np.float32(source.scale) * scales))
    if not np.all(np.isfinite(scales)) or not np.all(np.abs(bias) < 2**31):
        raise ValueError("factors must be finite, offsets below 2^31 steps of the layer's bias")
    return {
        "weights": (_WEIGHT * np.sign(factors)).astype(np.int8).reshape(1, 1, -1),
        "bias": bias.astype(np.int32),
        "weight_scales": scales.astype(np.float32),
    }
