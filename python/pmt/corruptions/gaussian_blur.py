"""Gaussian blur: a separable low-pass filter."""

from __future__ import annotations

import numpy as np

from pmt.corruptions.draws import Generators
from pmt.corruptions.gaussian_weights import gaussian_weights
from pmt.corruptions.noise import Images, Pixels

# The kernel ends at this many standard deviations.
TRUNCATE = 4.0


def gaussian_blur(images: Images, deviation: float, generators: Generators) -> Pixels:
    """Blur every channel with a normalised Gaussian; the border pixels repeat outwards.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C).
    deviation
        Standard deviation of the kernel in pixels, above 0.
    generators
        Not used: this corruption draws nothing.

    Returns
    -------
    numpy.ndarray
        float64, shape (N, H, W, C), full scale 1.
    """
    radius = int(TRUNCATE * deviation + 0.5)
    weights = gaussian_weights(np.arange(-radius, radius + 1), deviation)
    blurred = images / 255.0
    for axis in (1, 2):
        length = blurred.shape[axis]
        margins = [(radius, radius) if each == axis else (0, 0) for each in range(4)]
        padded = np.moveaxis(np.pad(blurred, margins, mode="edge"), axis, 0)
        shifted = (weight * padded[i : i + length] for i, weight in enumerate(weights))
        blurred = np.moveaxis(sum(shifted, start=np.zeros(())), 0, axis)
    return blurred
