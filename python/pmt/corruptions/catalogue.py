"""The catalogue: which corruptions there are, and the constant of each severity.

Constants: D. Hendrycks and T. Dietterich, "Benchmarking neural network robustness to common
corruptions and perturbations", ICLR 2019, as in their script for CIFAR-10-C, make_cifar_c.py
(not those of ImageNet-C, which are stronger).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pmt.corruptions.brightness import brightness
from pmt.corruptions.contrast import contrast
from pmt.corruptions.fog import fog
from pmt.corruptions.gaussian_blur import gaussian_blur
from pmt.corruptions.noise import (
    Generators,
    Images,
    Pixels,
    gaussian_noise,
    impulse_noise,
    shot_noise,
    speckle_noise,
)
from pmt.corruptions.saturate import saturate

SEVERITIES = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Corruption:
    """A corruption: what it does to a batch, its constant at severities 1 to 5, and its luck."""

    function: Callable[[Images, Any, Generators], Pixels]
    constants: tuple[Any, Any, Any, Any, Any]
    is_random: bool = True


CATALOGUE = {
    "gaussian_noise": Corruption(gaussian_noise, (0.04, 0.06, 0.08, 0.09, 0.10)),
    "shot_noise": Corruption(shot_noise, (500.0, 250.0, 100.0, 75.0, 50.0)),
    "impulse_noise": Corruption(impulse_noise, (0.01, 0.02, 0.03, 0.05, 0.07)),
    "contrast": Corruption(contrast, (0.75, 0.5, 0.4, 0.3, 0.15), is_random=False),
    "fog": Corruption(fog, ((0.2, 3.0), (0.5, 3.0), (0.75, 2.5), (1.0, 2.0), (1.5, 1.75))),
    "brightness": Corruption(brightness, (0.05, 0.1, 0.15, 0.2, 0.3), is_random=False),
    "speckle_noise": Corruption(speckle_noise, (0.06, 0.1, 0.12, 0.16, 0.2)),
    "gaussian_blur": Corruption(gaussian_blur, (0.4, 0.6, 0.7, 0.8, 1.0), is_random=False),
    "saturate": Corruption(
        saturate, ((0.3, 0.0), (0.1, 0.0), (1.5, 0.0), (2.0, 0.1), (2.5, 0.2)), is_random=False
    ),
}


def names() -> tuple[str, ...]:
    """Names that :func:`pmt.corruptions.corrupt` accepts, in catalogue order."""
    return tuple(CATALOGUE)
