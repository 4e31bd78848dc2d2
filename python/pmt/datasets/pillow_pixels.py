"""Pixels as Pillow's pictures and back; grey ones keep their channel axis."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]


def to_picture(module: ModuleType, pixels: Pixels) -> Any:
    """Make a picture of uint8 ``(H, W, C)``, C = 1 or 3; `module` is ``PIL.Image``."""
    return module.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


def to_pixels(picture: Any) -> Pixels:
    """Return the uint8 pixels of a picture, ``(H, W, C)``."""
    pixels = np.asarray(picture, np.uint8)
    return pixels[..., None] if pixels.ndim == 2 else pixels
