"""Fog: add a plasma fractal, then scale back to the brightness of the image."""

from __future__ import annotations

from pmt.corruptions.draws import Generators
from pmt.corruptions.noise import Images, Pixels
from pmt.corruptions.plasma import plasma_fractal


def map_size(height: int, width: int) -> int:
    """Side of the fog's map: the next power of two that covers the image, at least 2."""
    return max(2, 1 << (max(height, width) - 1).bit_length())


def fog(images: Images, density_and_decay: tuple[float, float], generators: Generators) -> Pixels:
    """Add a fog map, the same for all channels, and keep the image's own maximum.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C).
    density_and_decay
        Height of the map as a share of full scale, and the decay of
        :func:`pmt.corruptions.plasma.plasma_fractal`.
    generators
        One random generator an image.

    Returns
    -------
    numpy.ndarray
        float64, shape (N, H, W, C), full scale 1.
    """
    density, decay = density_and_decay
    height, width = images.shape[1:3]
    maps = plasma_fractal(map_size(height, width), decay, generators)[:, :height, :width, None]
    pixels = images / 255.0
    brightest = pixels.max(axis=(1, 2, 3), keepdims=True)
    foggy: Pixels = (pixels + density * maps) * brightest / (brightest + density)
    return foggy
