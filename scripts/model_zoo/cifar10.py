"""CIFAR-10 as the zoo uses it: 45,000 images train, 5,000 choose and calibrate, the rest tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pmt import datasets
from pmt.datasets import Dataset

TRAINED_IMAGES = 45_000


def read_splits(folder: Path) -> tuple[Dataset, Dataset, Dataset]:
    """Return the images to train on, those to choose and calibrate on, and the test images."""
    train = datasets.load(folder, split="train")
    if len(train) != 50_000:
        raise SystemExit(f"{folder}: {len(train)} training images, but CIFAR-10 has 50,000")
    held_out = train.subset(np.arange(TRAINED_IMAGES, len(train)))
    return train.take(TRAINED_IMAGES), held_out, datasets.load(folder, split="test")
