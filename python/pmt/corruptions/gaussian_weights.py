"""The bell curve that blurs weigh pixels with."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


def gaussian_weights(distances: npt.NDArray[np.int64], deviation: float) -> npt.NDArray[np.float64]:
    """Return ``exp(-(distance / deviation)**2 / 2)``, scaled to a sum of 1.

    By the C library, value by value: NumPy's own exponential ends in another last bit on processors
    with AVX-512, and glass blur cuts its first blur to whole grey levels.

    Parameters
    ----------
    distances
        In pixels, shape (n,).
    deviation
        Standard deviation in pixels, above 0.

    Returns
    -------
    numpy.ndarray
        float64, shape (n,).
    """
    exponents = -0.5 * (distances / deviation) ** 2
    weights = np.array([math.exp(exponent) for exponent in exponents.tolist()])
    weights /= weights.sum()
    return weights
