"""JPEG compression: what a low quality leaves of an image."""

from __future__ import annotations

import io

import numpy as np

from pmt.corruptions.draws import Generators
from pmt.corruptions.extras import pillow
from pmt.corruptions.noise import Images
from pmt.datasets.pillow_pixels import to_picture, to_pixels


def jpeg_compression(images: Images, quality: int, generators: Generators) -> Images:
    """Compress with Pillow, colour at half the resolution, and decompress.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C), C = 1 or 3.
    quality
        Of the JPEG encoder, 1 to 95.
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

    Notes
    -----
    Pixels may differ by a few grey levels between versions of the JPEG library.
    """
    module = pillow("jpeg_compression")
    result = np.empty(images.shape, np.uint8)
    for target, image in zip(result, images, strict=True):
        buffer = io.BytesIO()
        to_picture(module, image).save(buffer, "JPEG", quality=quality)
        target[...] = to_pixels(module.open(buffer))
    return result
