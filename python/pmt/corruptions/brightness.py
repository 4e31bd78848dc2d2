"""Brightness: raise the value of a colour in HSV space, hue and saturation unchanged."""

from __future__ import annotations

import numpy as np

from pmt.corruptions.draws import Generators
from pmt.corruptions.noise import Images, Pixels


def brightness(images: Images, increase: float, generators: Generators) -> Pixels:
    """Add a constant to V of HSV, clipped at full scale.

    With hue and saturation S fixed, the way to HSV and back has a closed form: a channel x is
    V * (1 - S k), where k depends on the hue alone, so S k = (V - x) / V and the brighter channel
    is V' * (1 - (V - x) / V). Black has no hue and becomes grey; a grey image gets V' itself.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C), C = 1 or 3.
    increase
        What is added to V, as a share of full scale.
    generators
        Not used: this corruption draws nothing.

    Returns
    -------
    numpy.ndarray
        float64, shape (N, H, W, C), full scale 1.
    """
    pixels = images / 255.0
    value = pixels.max(axis=3, keepdims=True)
    brighter = np.minimum(value + increase, 1.0)
    lightest = np.where(value == 0.0, 1.0, value)
    brightened: Pixels = brighter * (1.0 - (value - pixels) / lightest)
    return brightened
