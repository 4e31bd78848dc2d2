"""Defocus blur: a disk for a point, as a lens out of focus makes."""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from pmt.corruptions.draws import Generators
from pmt.corruptions.gaussian_weights import gaussian_weights
from pmt.corruptions.noise import Images, Pixels

# The published script draws its disks on this grid where they fit in it.
SMALL_RADIUS = 8
# A narrow Gaussian leaves weights of 1e-22 around the disk; no grey level depends on them.
NEGLIGIBLE = 1e-12
# Weights that ought to be equal differ by rounding beyond these digits.
WEIGHT_DIGITS = 15
# In grey levels: keeps rounding from pushing a whole level, as of a flat image, to the one below.
GUARD = 1e-9


@functools.lru_cache(maxsize=16)
def disk(radius: float, softness: float) -> npt.NDArray[np.float64]:
    """Return the kernel: a normalised disk of whole pixels, its edge softened by a Gaussian.

    Parameters
    ----------
    radius
        In pixels, above 0; below 1 the disk is one pixel.
    softness
        Standard deviation of the Gaussian in pixels. It is cut to 3x3 pixels up to a radius of 8
        and to 5x5 beyond.

    Returns
    -------
    numpy.ndarray
        float64, read-only, shape (17, 17) or for larger disks (2 radius + 1, 2 radius + 1).
    """
    small = radius <= SMALL_RADIUS
    reach = SMALL_RADIUS if small else int(radius)
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    kernel: npt.NDArray[np.float64] = (x**2 + y**2 <= radius**2).astype(np.float64)
    kernel /= kernel.sum()
    taps = np.arange(-1, 2) if small else np.arange(-2, 3)
    weights = gaussian_weights(taps, softness)
    margin = taps[-1]
    for _ in range(2):
        padded = np.pad(kernel, ((margin, margin), (0, 0)), mode="reflect")
        kernel = np.stack([padded[i : i + len(kernel)] for i in range(len(taps))], axis=2)
        kernel = (kernel * weights).sum(axis=2).T
    kernel.flags.writeable = False
    return kernel


def defocus_blur(
    images: Images, radius_and_softness: tuple[float, float], generators: Generators
) -> Pixels:
    """Blur every channel with a :func:`disk`; the border is mirrored, its pixels not repeated.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C).
    radius_and_softness
        Of the disk, in pixels.
    generators
        Not used: this corruption draws nothing.

    Returns
    -------
    numpy.ndarray
        float64, shape (N, H, W, C), full scale 1.
    """
    rings = _rings(*radius_and_softness)
    reach = max(max(y, x) for _, taps in rings for y, x in taps)
    height, width = images.shape[1:3]
    margins = ((0, 0), (reach, reach), (reach, reach), (0, 0))
    padded = np.pad(images, margins, mode="reflect").astype(np.float32)
    blurred = np.full(images.shape, GUARD)
    for weight, taps in rings:
        # Sums of grey levels are whole numbers below 2**24: float32 has them exactly.
        total = np.zeros(images.shape, np.float32)
        for y, x in taps:
            total += padded[:, reach + y : reach + y + height, reach + x : reach + x + width]
        blurred += np.multiply(total, weight, dtype=np.float64)
    blurred /= 255.0
    return blurred


@functools.lru_cache(maxsize=16)
def _rings(radius: float, softness: float) -> tuple[tuple[float, tuple[tuple[int, int], ...]], ...]:
    """The weights of a disk, each with the places (y, x) from the middle that have it."""
    kernel = disk(radius, softness)
    alike = kernel.round(WEIGHT_DIGITS)
    middle = len(kernel) // 2
    rings = []
    for weight in np.unique(alike):
        if weight > NEGLIGIBLE:
            places = np.argwhere(alike == weight) - middle
            taps = tuple((int(y), int(x)) for y, x in places)
            rings.append((float(kernel[alike == weight].mean()), taps))
    return tuple(rings)
