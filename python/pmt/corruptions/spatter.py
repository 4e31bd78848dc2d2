"""Spatter: drops of water or splashes of mud on the lens."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pmt.corruptions.distance import chamfer_distance
from pmt.corruptions.draws import Generators, standard_normal
from pmt.corruptions.edges import canny_edges
from pmt.corruptions.extras import ndimage
from pmt.corruptions.grey import luma
from pmt.corruptions.noise import Images, Pixels

WATER = np.array([175.0, 238.0, 238.0]) / 255.0  # pale turquoise
MUD = np.array([63.0, 42.0, 20.0]) / 255.0
EDGE_THRESHOLDS = (50, 150)
FARTHEST = 20
# Lights a drop from below right.
RELIEF = ((-2, -1, 0), (-1, 1, 1), (0, 1, 2))
LEAST_MUD = 0.8

Layers = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]
# float64, or int64 where sums must be exact.
Numbers = npt.NDArray[Any]


class Spatter(NamedTuple):
    """Constants of a severity; shares are of full scale, lengths in pixels.

    `strength` is the largest share of the water's colour that is added, or for mud the deviation
    of the Gaussian that smooths its splashes.
    """

    mean: float
    deviation: float
    smoothness: float
    threshold: float
    strength: float
    is_mud: bool


def spatter(images: Images, constants: Spatter, generators: Generators) -> Pixels:
    """Put a liquid on the image wherever smooth noise is above a threshold.

    Water adds its colour, most where the drop is thick and its relief bright; mud covers.
    Images of one channel get the luma of the colour.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C), C = 1 or 3.
    constants
        Of the severity.
    generators
        One random generator an image.

    Returns
    -------
    numpy.ndarray
        float64, shape (N, H, W, C), full scale 1.

    Raises
    ------
    ModuleNotFoundError
        SciPy is not installed.

    Notes
    -----
    The published script divides zero by zero where no pixel is above the threshold, and lets
    liquid thicker than full scale overflow; here the image stays, and the liquid is full scale.
    """
    smooth = ndimage("spatter").gaussian_filter
    noise = standard_normal(images.shape[:3], generators)
    noise = constants.mean + constants.deviation * noise
    liquid = smooth(noise, (0, constants.smoothness, constants.smoothness), mode="nearest")
    liquid[liquid < constants.threshold] = 0.0
    pixels = images / 255.0
    colour = MUD if constants.is_mud else WATER
    if images.shape[3] == 1:
        colour = luma(colour)
    if not constants.is_mud:
        light = constants.strength * _light_of_water(liquid)
        pixels += light[..., None] * colour
        return pixels
    splashes = (liquid > constants.threshold).astype(np.float64)
    cover = smooth(splashes, (0, constants.strength, constants.strength), mode="nearest")
    cover[cover < LEAST_MUD] = 0.0
    muddy: Pixels = pixels * (1.0 - cover[..., None]) + cover[..., None] * colour
    return muddy


def _light_of_water(liquid: Layers) -> Layers:
    """How bright the drops are, 0 to 1 in each image."""
    thickness = (np.minimum(liquid, 1.0) * 255).astype(np.uint8)
    edges = canny_edges(thickness, *EDGE_THRESHOLDS, ndimage("spatter"))
    distance = np.minimum(chamfer_distance(edges), FARTHEST)
    height = _equalised((_sum_of_nine(distance) / 9.0).astype(np.uint8))
    relief = np.clip(_correlated(height.astype(np.int64), RELIEF), 0, 255)
    # Nine times the mean, in integers: a ninth never ends in one half, so there are no ties.
    relief = (2 * _sum_of_nine(relief) + 9) // 18
    light: Layers = (thickness * relief).astype(np.float64)
    brightest = light.max(axis=(1, 2), keepdims=True)
    light /= np.where(brightest == 0.0, 1.0, brightest)
    return light


def _equalised(layers: Bytes) -> Bytes:
    """Spread the grey levels so that each is as frequent, as OpenCV's equalizeHist."""
    count, height, width = layers.shape
    keys = layers + 256 * np.arange(count)[:, None, None]
    histogram = np.bincount(keys.ravel(), minlength=256 * count).reshape(count, 256)
    first = (histogram > 0).argmax(axis=1)
    of_first = histogram[np.arange(count), first]
    rest = height * width - of_first
    scale = np.float32(255) / np.where(rest == 0, 1, rest).astype(np.float32)
    above = np.cumsum(histogram, axis=1) - of_first[:, None]
    table = np.rint(above.astype(np.float32) * scale[:, None])
    table = np.clip(table, 0, 255).astype(np.uint8)
    spread: Bytes = table.ravel()[keys]
    # A flat image stays as it is.
    return np.where(rest[:, None, None] == 0, layers, spread)


def _sum_of_nine(layers: Numbers) -> Numbers:
    return _correlated(layers, ((1, 1, 1),) * 3)


def _correlated(layers: Numbers, kernel: tuple[tuple[int, ...], ...]) -> Numbers:
    """3x3 correlation; the border is mirrored, its pixels not repeated."""
    height, width = layers.shape[1:]
    padded = np.pad(layers, ((0, 0), (1, 1), (1, 1)), mode="reflect")
    total = np.zeros_like(layers)
    for y, weights in enumerate(kernel):
        for x, weight in enumerate(weights):
            if weight != 0:
                total += weight * padded[:, y : y + height, x : x + width]
    return total
