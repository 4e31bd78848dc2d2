"""Images and constants to corrupt with: pixels from arithmetic, the same on every machine."""

from typing import Any

import numpy as np

from pmt.corruptions.catalog import CATALOG


def made_images(count: int = 2, height: int = 32, width: int = 32, channels: int = 3) -> np.ndarray:
    n, y, x, c = np.indices((count, height, width, channels))
    return ((n * 31 + y * 17 + x * 11 + c * 71 + x * y * (c + 1)) % 256).astype(np.uint8)


def flat(value: int, count: int = 40, side: int = 32, channels: int = 3) -> np.ndarray:
    return np.full((count, side, side, channels), value, np.uint8)


def constants_of(name: str) -> list[Any]:
    """The ten of a corruption: five of CIFAR-10-C, then five of ImageNet-C."""
    constants = CATALOG[name].constants
    return [*constants["cifar10"], *constants["imagenet"]]
