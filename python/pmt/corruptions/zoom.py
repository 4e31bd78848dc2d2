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
    height, width = fields.shape[:2]
    flat = fields.reshape(height, width, -1)
    lower, upper, share = _taps(height, factor)
    tall = _between(flat.take(lower, axis=0), flat.take(upper, axis=0), share[:, None, None])
    lower, upper, share = _taps(width, factor)
    # One share for each value of a row: a short last axis would make the arithmetic slow.
    shares = np.repeat(share, flat.shape[2]).reshape(width, -1)
    wide = _between(tall.take(lower, axis=1), tall.take(upper, axis=1), shares)
    return wide.reshape(fields.shape)


def zoomed_side(side: int, factor: float) -> tuple[int, int]:
    """Return the pixels of the centre and those it is enlarged to; equal ones give equal zooms."""
    centre = math.ceil(side / factor)
    return centre, round(centre * factor)


def _between(low: Fields, high: Fields, share: Fields) -> Fields:
    """Interpolate; `high` is overwritten. Equal ends give exactly that value."""
    high -= low
    high *= share.astype(high.dtype)
    high += low
    return high


def _taps(
    side: int, factor: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The two pixels that each new pixel lies between, and the share of the second."""
    centre, enlarged = zoomed_side(side, factor)
    ratio = (centre - 1) / (enlarged - 1) if enlarged > 1 else 1.0
    places = (np.arange(side) + (enlarged - side) // 2).astype(np.float64) * ratio
    lower = places.astype(np.int64)
    upper = np.minimum(lower + 1, centre - 1)
    start = (side - centre) // 2
    share: npt.NDArray[np.float64] = places - lower
    return start + lower, start + upper, share
