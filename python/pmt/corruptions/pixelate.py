"""Pixelate: fewer and larger pixels."""

from __future__ import annotations

import numpy as np

from pmt.corruptions.draws import Generators
from pmt.corruptions.extras import pillow
from pmt.corruptions.noise import Images
from pmt.datasets.pillow_pixels import to_picture, to_pixels


def pixelate(images: Images, share: float, generators: Generators) -> Images:
    """Shrink and enlarge again with Pillow's box filter.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C), C = 1 or 3.
    share
        Of the old sides that the shrunken image has, 0 to 1; truncated to whole pixels.
    generators
        Not used: this corruption draws nothing.

    Returns
    -------
    numpy.ndarray
        uint8, shape (N, H, W, C).

    Raises
    ------
    ModuleNotFoundError
        Pillow is not installed.
    """
    module = pillow("pixelate")
    height, width = images.shape[1:3]
    size = (max(1, int(width * share)), max(1, int(height * share)))
    result = np.empty(images.shape, np.uint8)
    for target, image in zip(result, images, strict=True):
        small = to_picture(module, image).resize(size, module.Resampling.BOX)
        target[...] = to_pixels(small.resize((width, height), module.Resampling.BOX))
    return result
