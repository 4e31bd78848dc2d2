"""CIFAR-10 as the zoo uses it: 45,000 images train, 5,000 choose and calibrate, the rest tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from pmt import datasets
from pmt.datasets import Dataset

TRAINED_IMAGES = 45_000
SIDE = 32
LARGEST_SHIFT = 4  # pixels


def read_splits(folder: Path) -> tuple[Dataset, Dataset, Dataset]:
    """Return the images to train on, those to choose and calibrate on, and the test images."""
    train = datasets.load(folder, split="train")
    if len(train) != 50_000:
        raise SystemExit(f"{folder}: {len(train)} training images, but CIFAR-10 has 50,000")
    held_out = train.subset(np.arange(TRAINED_IMAGES, len(train)))
    return train.take(TRAINED_IMAGES), held_out, datasets.load(folder, split="test")


def shifted_and_mirrored(
    images: npt.NDArray[np.uint8], generator: np.random.Generator
) -> npt.NDArray[np.uint8]:
    """Shift by up to 4 pixels (mirrored edges) and mirror: nothing a corruption does.

    No noise, blur, contrast or brightness is ever shown: these are the shifts that a user adapts
    the model to, so they must be new to it.
    """
    count, margin = len(images), LARGEST_SHIFT
    padded = np.pad(images, ((0, 0), (margin, margin), (margin, margin), (0, 0)), mode="reflect")
    rows, columns = generator.integers(0, 2 * margin + 1, size=(2, count))
    row_indices = rows[:, None] + np.arange(SIDE)
    column_indices = columns[:, None] + np.arange(SIDE)
    mirrored = generator.random(count) < 0.5
    column_indices[mirrored] = column_indices[mirrored, ::-1]
    every = np.arange(count)[:, None, None]
    return padded[every, row_indices[:, :, None], column_indices[:, None, :]]
