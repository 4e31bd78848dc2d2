"""Contrast: pull every channel towards its own mean."""

from __future__ import annotations

import numpy as np

from pmt.corruptions.draws import Generators
from pmt.corruptions.noise import Images, Pixels


def contrast(images: Images, factor: float, generators: Generators) -> Pixels:
    """Scale the distance of every value to the mean of its image and channel.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C).
    factor
        Share of the contrast that stays, 0 to 1.
    generators
        Not used: this corruption draws nothing.

    Returns
    -------
    numpy.ndarray
        float64, shape (N, H, W, C), full scale 1.
    """
    height, width = images.shape[1:3]
    # An integer sum has no order: the mean of an image cannot depend on the batch it came in.
    total = images.sum(axis=(1, 2), keepdims=True, dtype=np.int64)
    mean = total / (height * width) / 255.0
    pulled: Pixels = (images / 255.0 - mean) * factor + mean
    return pulled
