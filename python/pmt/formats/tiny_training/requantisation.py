"""Float32 weight scales whose requantisation scale is that of a double-precision source."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_MAX_STEPS = 2  # more never helps: two roundings lose less than two units in the last place


def matching_weight_scales(
    weight_scales: npt.NDArray[np.float32], input_scale: float, output_scale: float
) -> npt.NDArray[np.float32]:
    """Move weight scales by a unit or two in the last place where that makes the layer exact.

    The core computes ``float32(float32(s_x * s_w) / s_y)`` from float32 values. A source that
    keeps ``s_x`` and ``s_y`` in double precision and rounds ``s_x * s_w / s_y`` once can differ in
    the last bit, which moves a result that lies on a rounding tie.

    Parameters
    ----------
    weight_scales : ndarray of float32, shape (channels,)
        Scales ``s_w`` of the source.
    input_scale, output_scale : float
        ``s_x`` and ``s_y`` of the source, double precision.

    Returns
    -------
    ndarray of float32, shape (channels,)
        The nearest scales, at most two units in the last place away, with which the core's product
        equals the source's; unchanged where there are none so near.
    """
    wanted = (input_scale * weight_scales.astype(np.float64) / output_scale).astype(np.float32)
    result = weight_scales.copy()
    open_channels = np.ones(len(wanted), bool)
    up, down = weight_scales.copy(), weight_scales.copy()
    for _step in range(_MAX_STEPS + 1):
        for candidate in (up, down):
            product = (np.float32(input_scale) * candidate) / np.float32(output_scale)
            hit = open_channels & (product == wanted)
            result[hit] = candidate[hit]
            open_channels &= ~hit
        up = np.nextafter(up, np.float32(np.inf))
        down = np.nextafter(down, np.float32(0))
    return result
