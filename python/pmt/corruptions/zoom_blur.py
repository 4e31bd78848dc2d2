"""Zoom blur: the mean of an image and its enlargements, as a camera that moves forward makes."""

from __future__ import annotations

import numpy as np

from pmt.corruptions.draws import Generators
from pmt.corruptions.noise import Images, Pixels
from pmt.corruptions.zoom import zoomed, zoomed_side


def zoom_blur(images: Images, stop_and_step: tuple[float, float], generators: Generators) -> Pixels:
    """Average the image and its centre enlarged by factors from 1 up.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C).
    stop_and_step
        End and spacing of the factors, as of ``numpy.arange(1, stop, step)``. Rounding errors
        let some of them include the stop, which the published images do too.
    generators
        Not used: this corruption draws nothing.

    Returns
    -------
    numpy.ndarray
        float64, shape (N, H, W, C), full scale 1.
    """
    stop, step = stop_and_step
    factors = np.arange(1, stop, step)
    count, height, width, channels = images.shape
    # With the images last, rows and columns are copied whole.
    pixels = np.moveaxis(images, 0, 2).reshape(height, width, count * channels)
    # Grey levels, not shares of full scale: so the mean of equal levels is that level exactly.
    levels = pixels.astype(np.float32)
    total = levels.copy()
    # With few pixels a side neighbouring factors enlarge alike; factor 1 leaves all as it is.
    sizes, enlarged = ((height, height), (width, width)), levels
    for factor in factors.tolist():
        wanted = (zoomed_side(height, factor), zoomed_side(width, factor))
        if wanted != sizes:
            sizes, enlarged = wanted, zoomed(levels, factor)
        total += enlarged
    mean = total / np.float64(255 * (len(factors) + 1))
    return np.moveaxis(mean.reshape(height, width, count, channels), 2, 0)
