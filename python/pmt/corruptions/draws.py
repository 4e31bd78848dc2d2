"""Random numbers of a batch of images, each image's from a generator of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pmt.datasets.checks import checked_seed

Generators = Sequence[np.random.Generator]
Draws = npt.NDArray[np.float64]


def standard_normal(shape: tuple[int, ...], generators: Generators) -> Draws:
    """Draw normal numbers of mean 0 and deviation 1; `shape` begins with the number of images."""
    draws = np.empty(shape)
    for image_draws, generator in zip(draws, generators, strict=True):
        generator.standard_normal(out=image_draws)
    return draws


def uniform(shape: tuple[int, ...], generators: Generators) -> Draws:
    """Draw numbers from 0 to below 1; `shape` begins with the number of images."""
    draws = np.empty(shape)
    for image_draws, generator in zip(draws, generators, strict=True):
        generator.random(out=image_draws)
    return draws


def split_seed(seed: int, split: str) -> int:
    """Return the seed to corrupt a split with: `seed` for "train", `seed` + 1 for "test".

    Raises
    ------
    ValueError
        Another `split`, or a negative `seed`.
    """
    if split not in ("train", "test"):
        raise ValueError(f"split = {split!r}: must be 'train' or 'test'")
    return checked_seed(seed) + (split == "test")
