"""Noise: gaussian (sensor), shot (photons), impulse (dead pixels) and speckle (gain)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pmt.corruptions.draws import Generators, standard_normal, uniform

Images = npt.NDArray[np.uint8]
Pixels = npt.NDArray[np.float64]


def gaussian_noise(images: Images, deviation: float, generators: Generators) -> Pixels:
    """Add independent normal noise to every value.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C).
    deviation
        Standard deviation as a share of full scale, so 0.1 means 25.5 grey levels.
    generators
        One random generator an image.

    Returns
    -------
    numpy.ndarray
        float64, shape (N, H, W, C), full scale 1, not clipped.
    """
    return images / 255.0 + deviation * standard_normal(images.shape, generators)


def shot_noise(images: Images, photons: float, generators: Generators) -> Pixels:
    """Replace every value by a Poisson count with that mean.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C).
    photons
        Expected count at full scale; fewer photons, more noise.
    generators
        One random generator an image.

    Returns
    -------
    numpy.ndarray
        float64, shape (N, H, W, C), full scale 1, not clipped.
    """
    expected = images / 255.0 * photons
    counts = np.empty(images.shape)
    for image_counts, rate, generator in zip(counts, expected, generators, strict=True):
        image_counts[...] = generator.poisson(rate)
    return counts / photons


def impulse_noise(images: Images, amount: float, generators: Generators) -> Pixels:
    """Set a share of all values to black or white, half and half, each channel on its own.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C).
    amount
        Share of the values that are replaced, 0 to 1.
    generators
        One random generator an image.

    Returns
    -------
    numpy.ndarray
        float64, shape (N, H, W, C), full scale 1.
    """
    draw = uniform(images.shape, generators)
    pixels = images / 255.0
    pixels[draw < amount] = 1.0
    pixels[draw < amount / 2] = 0.0
    return pixels


def speckle_noise(images: Images, deviation: float, generators: Generators) -> Pixels:
    """Add independent normal noise whose deviation is a share of each value.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C).
    deviation
        Standard deviation as a share of the value, so black stays black.
    generators
        One random generator an image.

    Returns
    -------
    numpy.ndarray
        float64, shape (N, H, W, C), full scale 1, not clipped.
    """
    pixels = images / 255.0
    return pixels + deviation * pixels * standard_normal(images.shape, generators)
