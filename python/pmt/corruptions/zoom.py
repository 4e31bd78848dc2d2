"""Zoom: enlarge the centre of an image to the size of the image."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

# float32 or float64.
Fields = npt.NDArray[Any]


def zoomed(fields: Fields, factor: float) -> Fields:
    """Enlarge the centre by `factor`, linearly interpolated, cut to the old size.

    The centre has ``ceil(side / factor)`` pixels a side; its outermost pixels stay outermost, as
    scipy.ndimage.zoom has them, so the true factor is a little larger.

    Parameters
    ----------
    fields
        float32 or float64, shape (H, W, ...): the first two axes are enlarged.
    factor
        At least 1.

    Returns
    -------
    numpy.ndarray
        As `fields`.
    """
    for axis in (0, 1):
        lower, upper, shares = _taps(fields.shape[axis], factor)
        shape = [-1 if each == axis else 1 for each in range(fields.ndim)]
        share = shares.astype(fields.dtype).reshape(shape)
        low = fields.take(lower, axis=axis)
        step = fields.take(upper, axis=axis)
        step -= low
        step *= share
        step += low
        fields = step
    return fields


def _taps(
    side: int, factor: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The two pixels that each new pixel lies between, and the share of the second."""
    centre = math.ceil(side / factor)
    enlarged = round(centre * factor)
    ratio = (centre - 1) / (enlarged - 1) if enlarged > 1 else 1.0
    places = (np.arange(side) + (enlarged - side) // 2).astype(np.float64) * ratio
    lower = places.astype(np.int64)
    upper = np.minimum(lower + 1, centre - 1)
    start = (side - centre) // 2
    share: npt.NDArray[np.float64] = places - lower
    return start + lower, start + upper, share
