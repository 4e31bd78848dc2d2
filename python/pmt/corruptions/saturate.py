"""Saturate: scale and raise the saturation of a colour in HSV space."""

from __future__ import annotations

import numpy as np

from pmt.corruptions.draws import Generators
from pmt.corruptions.noise import Images, Pixels


def saturate(
    images: Images, scale_and_shift: tuple[float, float], generators: Generators
) -> Pixels:
    """Replace S of HSV by ``scale * S + shift``, clipped to 0..1; hue and value stay.

    A channel x is V * (1 - S k), where k depends on the hue alone. A grey pixel has no hue; like
    the published script, which gives it hue 0, a shift tints it red. Images of one channel have
    no saturation and stay as they are.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C), C = 1 or 3.
    scale_and_shift
        Factor of the saturation, and what is added to it as a share of full saturation.
    generators
        Not used: this corruption draws nothing.

    Returns
    -------
    numpy.ndarray
        float64, shape (N, H, W, C), full scale 1.
    """
    pixels = images / 255.0
    if images.shape[3] == 1:
        return pixels
    scale, shift = scale_and_shift
    value = pixels.max(axis=3, keepdims=True)
    spread = value - pixels.min(axis=3, keepdims=True)
    grey = spread == 0.0
    saturation = spread / np.where(value == 0.0, 1.0, value)
    hue = np.where(grey, (0.0, 1.0, 1.0), (value - pixels) / np.where(grey, 1.0, spread))
    changed: Pixels = value * (1.0 - np.clip(saturation * scale + shift, 0.0, 1.0) * hue)
    return changed
