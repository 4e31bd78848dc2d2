"""Distance to the nearest of some pixels, by the 5x5 chamfer mask, on batches of images."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# Steps of the mask in 1/2**16 pixel: 1 to a side, 1.4 diagonally, 2.1969 as a knight moves.
ONE = 1 << 16
DIAGONAL = 91750
KNIGHT = 143976
FAR = (2**31 - 1) >> 2

# Steps from the rows above to a pixel: rows up, columns to the right, length.
STEPS = (
    (1, 0, ONE),
    (1, -1, DIAGONAL),
    (1, 1, DIAGONAL),
    (1, -2, KNIGHT),
    (1, 2, KNIGHT),
    (2, -1, KNIGHT),
    (2, 1, KNIGHT),
)


def chamfer_distance(marked: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Return the length of the shortest way to a marked pixel, as OpenCV's DIST_L2 with mask 5.

    At most 2 % off the Euclidean distance.

    Parameters
    ----------
    marked
        bool, shape (N, H, W).

    Returns
    -------
    numpy.ndarray
        float64, shape (N, H, W), in pixels; above 8,000 in an image with no mark.
    """
    distance = np.where(marked, 0, FAR)
    _sweep(distance)
    _sweep(distance[:, ::-1, ::-1])
    return distance / ONE


def _sweep(distance: npt.NDArray[np.int64]) -> None:
    """Take the ways from above and from the left into account, in place."""
    count, height, width = distance.shape
    ramp = np.arange(width) * ONE
    # Two rows above the image and two columns beside it, all far.
    padded = np.full((count, height + 2, width + 4), FAR)
    padded[:, 2:, 2:-2] = distance
    for y in range(2, height + 2):
        row = padded[:, y, 2:-2]
        for up, right, length in STEPS:
            above = padded[:, y - up, 2 + right : 2 + right + width]
            np.minimum(row, above + length, out=row)
        # A way from the left is one pixel longer in each column.
        row[...] = np.minimum.accumulate(row - ramp, axis=1) + ramp
    distance[...] = padded[:, 2:, 2:-2]
