"""The grey of a colour: its luma after ITU-R BT.601."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

LUMA = (0.299, 0.587, 0.114)


def luma(pixels: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the luma of the last axis, of 3 channels or already 1, which stays an axis."""
    if pixels.shape[-1] == 1:
        return pixels
    red, green, blue = LUMA
    return red * pixels[..., 0:1] + green * pixels[..., 1:2] + blue * pixels[..., 2:3]
