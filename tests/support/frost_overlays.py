"""Made overlays for the corruption frost: real names, real formats, pixels from arithmetic."""

from pathlib import Path

import numpy as np
from PIL import Image

NAMES = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")


def made_overlay(number: int, height: int = 61, width: int = 73) -> np.ndarray:
    """Lossless in PNG; the JPEG files are flat, so that every decoder agrees on them."""
    y, x, channel = np.indices((height, width, 3))
    if number >= 4:
        return np.full((height, width, 3), 40 * number, np.uint8)
    return ((y * 3 + x * 5 + channel * 50 + number * 17) % 200).astype(np.uint8)


def write_overlays(folder: Path) -> None:
    folder.mkdir(parents=True)
    for number, name in enumerate(NAMES, start=1):
        Image.fromarray(made_overlay(number)).save(folder / name)
