"""Sampling: values of images between their pixels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.float64]


def bilinear(
    images: npt.NDArray[np.float64], y: Places, x: Places, *, repeat_edge: bool
) -> npt.NDArray[np.float64]:
    """Interpolate linearly in both directions; beyond the border an image is mirrored.

    Parameters
    ----------
    images
        float64, shape (N, H, W, C).
    y, x
        Places in pixels, (0, 0) the centre of the first one; float64, shape (N, h, w).
    repeat_edge
        Whether the mirror stands at the edge of the outermost pixels (``c b a | a b c``), or in
        their middle (``c b | a b c``).

    Returns
    -------
    numpy.ndarray
        float64, shape (N, h, w, C).
    """
    count, height, width, channels = images.shape
    top, left = np.floor(y), np.floor(x)
    down, right = (y - top)[..., None], (x - left)[..., None]
    pixels = images.reshape(-1, channels)
    start = (np.arange(count) * height)[:, None, None]
    rows = [(start + _folded(top + i, height, repeat_edge)) * width for i in (0, 1)]
    columns = [_folded(left + i, width, repeat_edge) for i in (0, 1)]
    lines = []
    for row in rows:
        first, second = (pixels.take(row + column, axis=0) for column in columns)
        second -= first
        second *= right
        second += first
        lines.append(second)
    upper: npt.NDArray[np.float64]
    lower: npt.NDArray[np.float64]
    upper, lower = lines
    lower -= upper
    lower *= down
    lower += upper
    return lower


def _folded(places: Places, side: int, repeat_edge: bool) -> npt.NDArray[np.int64]:
    """Indices inside 0..side - 1 for whole numbers on either side of it."""
    if side == 1:
        return np.zeros(places.shape, np.int64)
    period = 2 * side if repeat_edge else 2 * side - 2
    inside = np.mod(places, period).astype(np.int64)
    folded: npt.NDArray[np.int64] = np.minimum(inside, period - int(repeat_edge) - inside)
    return folded
