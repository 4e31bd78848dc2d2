"""Snow: streaks of bright flakes over a whitened image."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pmt.corruptions.draws import Generators, standard_normal
from pmt.corruptions.grey import luma
from pmt.corruptions.motion_blur import trail
from pmt.corruptions.noise import Images, Pixels
from pmt.corruptions.zoom import zoomed

# Flakes fall straight down, give or take 45 degrees.
ANGLES = (-135.0, -45.0)


class Snow(NamedTuple):
    """Constants of a severity; shares are of full scale, lengths in pixels."""

    mean: float
    deviation: float
    zoom: float
    threshold: float
    radius: int
    trail: float
    kept: float


def snow(images: Images, constants: Snow, generators: Generators) -> Pixels:
    """Whiten the image, then add a layer of streaks and the same layer turned upside down.

    The layer is normal noise of the constants' mean and deviation, enlarged by `zoom`; what is
    below `threshold` is dark. The rest is blurred along a line
    (:func:`pmt.corruptions.motion_blur.trail`). Of the image a share `kept` stays, the remainder
    is no darker than half grey plus 1.5 times its luma.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C).
    constants
        Of the severity.
    generators
        One random generator an image.

    Returns
    -------
    numpy.ndarray
        float64, shape (N, H, W, C), full scale 1.
    """
    noise = standard_normal(images.shape[:3], generators)
    angles = [generator.uniform(*ANGLES) for generator in generators]
    noise = constants.mean + constants.deviation * noise
    flakes = np.moveaxis(zoomed(np.moveaxis(noise, 0, 2), constants.zoom), 2, 0)
    flakes = np.where(flakes < constants.threshold, 0.0, np.clip(flakes, 0.0, 1.0))
    layer = (flakes * 255).astype(np.uint8)[..., None]
    streaks = trail(layer, constants.radius, constants.trail, angles) / 255.0
    pixels = images / 255.0
    whitened = np.maximum(pixels, luma(pixels) * 1.5 + 0.5)
    whitened = constants.kept * pixels + (1.0 - constants.kept) * whitened
    snowy: Pixels = whitened + streaks + streaks[:, ::-1, ::-1]
    return snowy
