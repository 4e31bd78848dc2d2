"""The catalogue: which corruptions there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pmt.corruptions.blur import defocus_blur, gaussian_blur, glass_blur, motion_blur, zoom_blur
from pmt.corruptions.digital import (
    brightness,
    contrast,
    elastic_transform,
    jpeg_compression,
    pixelate,
    saturate,
)
from pmt.corruptions.noise import gaussian_noise, impulse_noise, shot_noise, speckle_noise
from pmt.corruptions.weather import fog, frost, snow, spatter

SEVERITIES = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Corruption:
    """A corruption: what it does to a batch, and what it needs for it.

    The function takes the images, the constant of the severity, one generator an image where it
    is random, and as keyword `overlays` those of frost where it needs them. It returns uint8
    pixels, or float ones of full scale 1 which are still to be clipped and truncated.
    """

    function: Callable[..., Any]
    is_random: bool = True
    needs_overlays: bool = False


# In the order of the published script.
CATALOGUE = {
    "gaussian_noise": Corruption(gaussian_noise),
    "shot_noise": Corruption(shot_noise),
    "impulse_noise": Corruption(impulse_noise),
    "defocus_blur": Corruption(defocus_blur, is_random=False),
    "glass_blur": Corruption(glass_blur),
    "motion_blur": Corruption(motion_blur),
    "zoom_blur": Corruption(zoom_blur, is_random=False),
    "snow": Corruption(snow),
    "frost": Corruption(frost, needs_overlays=True),
    "fog": Corruption(fog),
    "brightness": Corruption(brightness, is_random=False),
    "contrast": Corruption(contrast, is_random=False),
    "elastic_transform": Corruption(elastic_transform),
    "pixelate": Corruption(pixelate, is_random=False),
    "jpeg_compression": Corruption(jpeg_compression, is_random=False),
    "speckle_noise": Corruption(speckle_noise),
    "gaussian_blur": Corruption(gaussian_blur, is_random=False),
    "spatter": Corruption(spatter),
    "saturate": Corruption(saturate, is_random=False),
}


def names() -> tuple[str, ...]:
    """Names that :func:`pmt.corruptions.corrupt` accepts, in the order of CIFAR-10-C."""
    return tuple(CATALOGUE)
