"""Motion blur: a fading trail along a line, in a random direction for each image."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pmt.corruptions.draws import Generators
from pmt.corruptions.gaussian_weights import gaussian_weights
from pmt.corruptions.noise import Images

LARGEST_ANGLE = 45.0
# Half of the smallest 16-bit step, in grey levels of 8 bit.
HALF_OF_16_BIT = 0.5 / 257


def motion_blur(
    images: Images, radius_and_deviation: tuple[int, float], generators: Generators
) -> Images:
    """Blur every image along its own line, at most 45 degrees from the horizontal.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C).
    radius_and_deviation
        Of the :func:`trail`, in pixels.
    generators
        One random generator an image.

    Returns
    -------
    numpy.ndarray
        uint8, shape (N, H, W, C).
    """
    angles = [generator.uniform(-LARGEST_ANGLE, LARGEST_ANGLE) for generator in generators]
    return trail(images, *radius_and_deviation, angles)


def trail(images: Images, radius: int, deviation: float, angles: list[float]) -> Images:
    """Blur each image along a line to one side, as ImageMagick's MotionBlurImage does.

    The line has ``2 radius + 1`` pixels, starts at the pixel itself, goes in whole pixels and
    fades as half a Gaussian. The border pixels repeat outwards. As ImageMagick 6 does, the sums
    are rounded to 16 bit and then truncated to 8.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C).
    radius
        In pixels, at least 1.
    deviation
        Standard deviation of the Gaussian in pixels, above 0.
    angles
        One an image, in degrees, clockwise from the direction of x.

    Returns
    -------
    numpy.ndarray
        uint8, shape (N, H, W, C).
    """
    steps = np.arange(2 * radius + 1)
    weights = gaussian_weights(steps, deviation)
    height, width = images.shape[1:3]
    reach = 2 * radius
    margins = ((0, 0), (reach, reach), (reach, reach), (0, 0))
    padded = np.pad(images, margins, mode="edge")
    blurred = np.empty(images.shape, np.uint8)
    product, total = np.empty(images.shape[1:]), np.empty(images.shape[1:])
    for image, source, angle in zip(blurred, padded, angles, strict=True):
        float_source = source.astype(np.float64)
        total.fill(HALF_OF_16_BIT)
        offsets = _offsets(steps, angle) + reach
        for (x, y), weight in zip(offsets.tolist(), weights.tolist(), strict=True):
            np.multiply(float_source[y : y + height, x : x + width], weight, out=product)
            total += product
        image[...] = total
    return blurred


def _offsets(steps: npt.NDArray[np.int64], angle: float) -> npt.NDArray[np.int64]:
    """Whole pixels (x, y) along a line, halves towards zero at positive and away at negative."""
    direction = np.array((math.cos(math.radians(angle)), math.sin(math.radians(angle))))
    offsets: npt.NDArray[np.int64] = np.ceil(steps[:, None] * direction - 0.5).astype(np.int64)
    return offsets
