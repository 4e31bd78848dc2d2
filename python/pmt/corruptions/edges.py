"""Edges: Canny's detector on batches of 8-bit grey images, in integers alone."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import numpy.typing as npt

# tan(22.5 degrees), in 1/2**15.
TANGENT, TANGENT_BITS = 13573, 15


def canny_edges(
    layers: npt.NDArray[np.uint8], low: int, high: int, ndimage: ModuleType
) -> npt.NDArray[np.bool_]:
    """Return where the edges are, by the rules of OpenCV's Canny.

    Gradients are 3x3 Sobel differences with the border pixels repeated, their magnitude is
    ``|dx| + |dy|``, zero outside the image. A pixel is an edge where the magnitude is a maximum
    across the edge and above `low`, and edge pixels connect it to one above `high`.

    Parameters
    ----------
    layers
        uint8, shape (N, H, W).
    low, high
        Thresholds of the magnitude.
    ndimage
        The module scipy.ndimage.

    Returns
    -------
    numpy.ndarray
        bool, shape (N, H, W).
    """
    dx, dy = _sobel(layers)
    magnitude = np.abs(dx) + np.abs(dy)
    candidates = (magnitude > low) & _thin(dx, dy, magnitude)
    # Neighbours within one image, not across images.
    neighbours = np.zeros((3, 3, 3), bool)
    neighbours[1] = True
    labels, found = ndimage.label(candidates, structure=neighbours)
    strong = np.zeros(found + 1, bool)
    strong[labels[candidates & (magnitude > high)]] = True
    edges: npt.NDArray[np.bool_] = strong[labels]
    return edges


def _sobel(
    layers: npt.NDArray[np.uint8],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    padded = np.pad(layers, ((0, 0), (1, 1), (1, 1)), mode="edge").astype(np.int32)
    down = padded[:, 2:] - padded[:, :-2]
    across = padded[:, :, 2:] - padded[:, :, :-2]
    dx = across[:, :-2] + 2 * across[:, 1:-1] + across[:, 2:]
    dy = down[:, :, :-2] + 2 * down[:, :, 1:-1] + down[:, :, 2:]
    return dx, dy


def _thin(
    dx: npt.NDArray[np.int32], dy: npt.NDArray[np.int32], magnitude: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_]:
    """Whether the magnitude is a maximum along the gradient, which has four directions."""
    padded = np.pad(magnitude, ((0, 0), (1, 1), (1, 1)))
    height, width = magnitude.shape[1:]

    def beside(y: int, x: int) -> npt.NDArray[np.int32]:
        return padded[:, 1 + y : 1 + y + height, 1 + x : 1 + x + width]

    x = np.abs(dx).astype(np.int64)
    y = np.abs(dy).astype(np.int64) << TANGENT_BITS
    flat = y < x * TANGENT
    # tan(67.5 degrees) is tan(22.5 degrees) + 2.
    steep = y > x * (TANGENT + (2 << TANGENT_BITS))
    rising = (dx ^ dy) < 0
    # The comparison is strict on one side: of two equal neighbours the first is kept.
    along_x = (magnitude > beside(0, -1)) & (magnitude >= beside(0, 1))
    along_y = (magnitude > beside(-1, 0)) & (magnitude >= beside(1, 0))
    up_right = (magnitude > beside(-1, 1)) & (magnitude > beside(1, -1))
    up_left = (magnitude > beside(-1, -1)) & (magnitude > beside(1, 1))
    diagonal = np.where(rising, up_right, up_left)
    thin: npt.NDArray[np.bool_] = np.where(flat, along_x, np.where(steep, along_y, diagonal))
    return thin
