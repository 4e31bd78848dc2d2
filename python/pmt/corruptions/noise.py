"""Noise: Gaussian (sensor), shot (photons), impulse (dead pixels) and speckle (gain)."""

from __future__ import annotations

import numpy as np

from pmt.corruptions.catalog import Generators, Images, Pixels, corruption
from pmt.corruptions.image_operations import standard_normal, uniform


@corruption(cifar10=(0.04, 0.06, 0.08, 0.09, 0.10), imagenet=(0.08, 0.12, 0.18, 0.26, 0.38))
def gaussian_noise(images: Images, deviation: float, generators: Generators) -> Pixels:
    """Add independent normal noise to every value; its deviation is a share of full scale."""
    return images / 255.0 + deviation * standard_normal(images.shape, generators)


@corruption(cifar10=(500.0, 250.0, 100.0, 75.0, 50.0), imagenet=(60.0, 25.0, 12.0, 5.0, 3.0))
def shot_noise(images: Images, photons: float, generators: Generators) -> Pixels:
    """Replace every value by a Poisson count with that mean; `photons` is full scale."""
    expected = images / 255.0 * photons
    counts = np.empty(images.shape)
    for image_counts, rate, generator in zip(counts, expected, generators, strict=True):
        image_counts[...] = generator.poisson(rate)
    return counts / photons


@corruption(cifar10=(0.01, 0.02, 0.03, 0.05, 0.07), imagenet=(0.03, 0.06, 0.09, 0.17, 0.27))
def impulse_noise(images: Images, amount: float, generators: Generators) -> Pixels:
    """Set a share of all values to black or white, half and half, each channel on its own."""
    draw = uniform(images.shape, generators)
    pixels = images / 255.0
    pixels[draw < amount] = 1.0
    pixels[draw < amount / 2] = 0.0
    return pixels


@corruption(cifar10=(0.06, 0.1, 0.12, 0.16, 0.2), imagenet=(0.15, 0.2, 0.35, 0.45, 0.6))
def speckle_noise(images: Images, deviation: float, generators: Generators) -> Pixels:
    """Add independent normal noise whose deviation is a share of each value: black stays black."""
    pixels = images / 255.0
    return pixels + deviation * pixels * standard_normal(images.shape, generators)
