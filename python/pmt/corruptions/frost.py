"""Frost: a photograph of frost on the lens."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pmt.corruptions.draws import Generators
from pmt.corruptions.extras import pillow
from pmt.corruptions.grey import luma
from pmt.corruptions.noise import Images
from pmt.corruptions.overlays import Overlays


class Frost(NamedTuple):
    """Constants of a severity: shares of the image and of the overlay, one pixel of `stride`."""

    image: float
    overlay: float
    stride: int


def frost(
    images: Images, constants: Frost, generators: Generators, *, overlays: Overlays
) -> Images:
    """Add a random part of a random overlay.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C), C = 1 or 3; one channel gets the luma of the overlay.
    constants
        Of the severity. Of the overlays every `stride`-th pixel is used, from the middle one of
        the first `stride` on: what OpenCV's linear resizing to 1 / 5 comes to, for it does not
        average. An overlay smaller than the image is enlarged to cover it.
    generators
        One random generator an image.
    overlays
        As of :func:`pmt.corruptions.overlays.read_overlays`.

    Returns
    -------
    numpy.ndarray
        uint8, shape (N, H, W, C), clipped and truncated.
    """
    height, width, channels = images.shape[1:]
    start = constants.stride // 2
    thinned = [each[start :: constants.stride, start :: constants.stride] for each in overlays]
    frosted = np.empty(images.shape, np.uint8)
    for target, image, generator in zip(frosted, images, generators, strict=True):
        layer = _covering(thinned[generator.integers(len(thinned))], height, width)
        # The end is exclusive, in the published script too: the last place is never chosen.
        y = generator.integers(max(1, layer.shape[0] - height))
        x = generator.integers(max(1, layer.shape[1] - width))
        part = layer[y : y + height, x : x + width].astype(np.float64)
        if channels == 1:
            part = luma(part)
        target[...] = np.minimum(constants.image * image + constants.overlay * part, 255.0)
    return frosted


def _covering(overlay: Images, height: int, width: int) -> Images:
    factor = max(height / overlay.shape[0], width / overlay.shape[1])
    if factor <= 1.0:
        return overlay
    module = pillow("frost")
    size = (math.ceil(overlay.shape[1] * factor), math.ceil(overlay.shape[0] * factor))
    larger: Images = np.asarray(
        module.fromarray(np.ascontiguousarray(overlay)).resize(size, module.Resampling.BILINEAR)
    )
    return larger
