"""Zoom blur: the mean of an image and its enlargements, as a camera that moves forward makes."""

from __future__ import annotations

import numpy as np

from pmt.corruptions.noise import Generators, Images
from pmt.corruptions.zoom import Fields, zoomed


def zoom_blur(images: Images, stop_and_step: tuple[float, float], generators: Generators) -> Fields:
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
        float32, shape (N, H, W, C), full scale 1.
    """
    stop, step = stop_and_step
    factors = np.arange(1, stop, step)
    count, height, width, channels = images.shape
    # With the images last, rows and columns are copied whole.
    pixels = np.moveaxis(images, 0, 2).reshape(height, width, count * channels)
    scaled = pixels.astype(np.float32) / np.float32(255)
    total = scaled.copy()
    for factor in factors.tolist():
        total += zoomed(scaled, factor)
    total /= np.float32(len(factors) + 1)
    return np.moveaxis(total.reshape(height, width, count, channels), 2, 0)
