"""The catalog of corruptions: each declares itself, with the constants published for it.

Source of the constants: D. Hendrycks and T. Dietterich, "Benchmarking neural network robustness to
common corruptions and perturbations", ICLR 2019; their scripts make_cifar_c.py, for images of
32x32, and make_imagenet_c.py, for 224x224. Lengths are in pixels of those images.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from pmt._util.text import did_you_mean

SEVERITIES = (1, 2, 3, 4, 5)
CONSTANTS = ("cifar10", "imagenet")
# Order of the published script; others follow in the order in which they are declared.
_PUBLISHED = (
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "defocus_blur",
    "glass_blur",
    "motion_blur",
    "zoom_blur",
    "snow",
    "frost",
    "fog",
    "brightness",
    "contrast",
    "elastic_transform",
    "pixelate",
    "jpeg_compression",
    "speckle_noise",
    "gaussian_blur",
    "spatter",
    "saturate",
)

Images = npt.NDArray[np.uint8]
Pixels = npt.NDArray[np.float64]
Generators = Sequence[np.random.Generator]
# One for each severity, whatever the corruption takes.
Severities = tuple[Any, Any, Any, Any, Any]
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Corruption:
    """A corruption: what it does to a batch, and what it needs for it.

    The function takes uint8 images of shape (N, H, W, C) with C = 1 or 3, the constant of the
    severity, one generator an image (none where it is not random), and as keyword `overlays` those
    of frost where it needs them. It returns uint8 pixels, or float ones of full scale 1 which are
    still to be clipped and truncated.
    """

    function: Callable[..., Any]
    constants: Mapping[str, Severities]
    is_random: bool
    needs_overlays: bool


CATALOG: dict[str, Corruption] = {}


def corruption(
    *,
    cifar10: Severities,
    imagenet: Severities,
    is_random: bool = True,
    needs_overlays: bool = False,
) -> Callable[[Function], Function]:
    """Declare a function as the corruption of its name, with its constants of both scripts."""
    constants = dict(zip(CONSTANTS, (cifar10, imagenet), strict=True))

    def declared(function: Function) -> Function:
        CATALOG[function.__name__] = Corruption(function, constants, is_random, needs_overlays)
        return function

    return declared


def names() -> tuple[str, ...]:
    """Names that :func:`pmt.corruptions.corrupt` accepts, in the order of CIFAR-10-C."""
    new = [name for name in CATALOG if name not in _PUBLISHED]
    return (*_PUBLISHED, *new)


def checked_constants(constants: str) -> str:
    """Return whose constants to take, or raise ValueError."""
    if constants not in CONSTANTS:
        raise ValueError(
            f"constants={constants!r}: no such constants{did_you_mean(constants, CONSTANTS)}"
        )
    return constants
