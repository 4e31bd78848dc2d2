"""Noise probes: copies of images with more noise, and the share of noise in new images.

The noise is taken from the new images themselves: every image gets the details of another one on
top, that one less its local means. In images with noise these are mostly noise, and a network's
channels can be told apart by what is left of them. That images made noisier still tell about their
noise is known from denoising (Moran et al. 2020, arXiv:1910.11908).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["disturbed_pairs", "noise_share"]

# Part of the shorter side: a local mean is over twice as many pixels and one more, at least 3.
_RADII = 16


def disturbed_pairs(images: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Return every image twice: at 2 i as it is, at 2 i + 1 with the details of the next on top.

    The first image comes after the last. Values are clipped to -128..127.
    """
    pairs = np.repeat(images, 2, axis=0)
    for i, image in enumerate(images):
        total = image + _details(images[(i + 1) % len(images)])
        pairs[2 * i + 1] = np.clip(total, -128, 127)
    return pairs


def noise_share(
    clean: npt.NDArray[np.float32], found: npt.NDArray[np.float32], kernel: tuple[int, int]
) -> float:
    """Return the share (0..1) of a layer's variation between places that clean images do not have.

    ``1 - roughness of clean / roughness of found``, where roughness is the mean squared difference,
    over twice the variance, of two places as far apart as the window goes; 0 where new images are
    as smooth as clean ones or smoother. Covariances are those of a layer's input, as in
    :class:`pmt.train.clean_statistics.WindowStatistics`; the scale of a group does not matter.
    """
    known, now = _own(clean, kernel), _own(found, kernel)
    varied = (known[:, 0] > 0) & (now[:, 0] > 0)
    before, after = _roughness(known[varied], kernel), _roughness(now[varied], kernel)
    return max(0.0, 1.0 - before / after) if after > 0 else 0.0


def _details(image: npt.NDArray[np.int8]) -> npt.NDArray[np.int32]:
    """Subtract from every pixel the mean of the square around it, as far as it lies inside."""
    radius = max(1, round(min(image.shape[:2]) / _RADII))
    sums, counts = image.astype(np.int32), np.ones((), np.int32)
    for axis in (0, 1):
        sums = _window_sums(sums, radius, axis)
        ones = np.ones([image.shape[a] if a == axis else 1 for a in range(3)], np.int32)
        counts = counts * _window_sums(ones, radius, axis)
    details: npt.NDArray[np.int32] = image - (2 * sums + counts) // (2 * counts)
    return details


def _window_sums(values: npt.NDArray[np.int32], radius: int, axis: int) -> npt.NDArray[np.int32]:
    size = values.shape[axis]
    edge = np.zeros([1 if a == axis else n for a, n in enumerate(values.shape)], np.int32)
    upto = np.concatenate([edge, np.cumsum(values, axis=axis, dtype=np.int32)], axis=axis)
    places = np.arange(size)
    last = np.take(upto, np.minimum(places + radius + 1, size), axis=axis)
    sums: npt.NDArray[np.int32] = last - np.take(upto, np.maximum(places - radius, 0), axis=axis)
    return sums


def _own(covariances: npt.NDArray[np.float32], kernel: tuple[int, int]) -> npt.NDArray[np.float64]:
    """Sum the covariances of a group's channels with themselves, by distance: (groups, lags)."""
    lags = kernel[1] + (kernel[0] - 1) * (2 * kernel[1] - 1)
    channels = round((covariances.shape[1] / lags) ** 0.5)
    own = covariances.reshape(-1, lags, channels, channels).diagonal(axis1=2, axis2=3)
    # Exactly rounded sums: the same on every machine.
    sums = [[math.fsum(values) for values in group] for group in own]
    return np.array(sums, np.float64).reshape(-1, lags)


def _roughness(own: npt.NDArray[np.float64], kernel: tuple[int, int]) -> float:
    height, width = kernel
    far = [width - 1] * (width > 1) + [own.shape[1] - width] * (height > 1)
    groups = [1 - math.fsum(group[far]) / (len(far) * float(group[0])) for group in own]
    return math.fsum(groups) / len(groups) if groups else 0.0
