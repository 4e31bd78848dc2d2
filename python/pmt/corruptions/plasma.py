"""Plasma fractal: a batch of cloudy height maps by the diamond-square algorithm."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pmt.corruptions.draws import Generators, uniform

FIRST_WIBBLE = 100.0


def plasma_fractal(size: int, decay: float, generators: Generators) -> npt.NDArray[np.float64]:
    """Make one height map a generator; the maps wrap around at their edges.

    The random amplitude is the square of a "wibble" that starts at 100 and is divided by `decay`
    after each halving of the grid, as in the script that made CIFAR-10-C.

    Parameters
    ----------
    size
        Side of the map, a power of two, at least 2.
    decay
        Divisor of the wibble, above 1; a larger one gives a smoother map.
    generators
        One random generator a map; each draws ``size * size - 1`` numbers.

    Returns
    -------
    numpy.ndarray
        float64, shape (len(generators), size, size); every map spans exactly 0 to 1.
    """
    draws = 2.0 * uniform((len(generators), size * size - 1), generators) - 1.0
    heights = np.zeros((len(generators), size, size))
    used, step, wibble = 0, size, FIRST_WIBBLE
    while step >= 2:
        cells = (size // step) ** 2
        level = draws[:, used : used + 3 * cells].reshape(-1, 3, size // step, size // step)
        _refine(heights, step, level * wibble**2)
        used, step, wibble = used + 3 * cells, step // 2, wibble / decay
    heights -= heights.min(axis=(1, 2), keepdims=True)
    heights /= heights.max(axis=(1, 2), keepdims=True)
    return heights


def _refine(
    heights: npt.NDArray[np.float64], step: int, displacement: npt.NDArray[np.float64]
) -> None:
    """Halve the grid in place: centres of the squares first, then the middles of their sides."""
    half = step // 2
    corners = heights[:, ::step, ::step]
    right = np.roll(corners, -1, axis=2)
    below = np.roll(corners, -1, axis=1)
    below_right = np.roll(right, -1, axis=1)
    centres = (corners + right + below + below_right) / 4 + displacement[:, 0]
    above_centres = np.roll(centres, 1, axis=1)
    left_centres = np.roll(centres, 1, axis=2)
    tops = (corners + right + centres + above_centres) / 4 + displacement[:, 1]
    lefts = (corners + below + centres + left_centres) / 4 + displacement[:, 2]
    heights[:, half::step, half::step] = centres
    heights[:, ::step, half::step] = tops
    heights[:, half::step, ::step] = lefts
