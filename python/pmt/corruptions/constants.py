"""The published constants of the corruptions, severities 1 to 5.

Source: D. Hendrycks and T. Dietterich, "Benchmarking neural network robustness to common
corruptions and perturbations", ICLR 2019; their scripts make_cifar_c.py, for images of 32x32, and
make_imagenet_c.py, for 224x224. Lengths are in pixels of those images.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pmt.corruptions.digital import Elastic
from pmt.corruptions.weather import Frost, Snow, Spatter

Constants = Mapping[str, tuple[Any, Any, Any, Any, Any]]

CIFAR10: Constants = {
    "gaussian_noise": (0.04, 0.06, 0.08, 0.09, 0.10),
    "shot_noise": (500.0, 250.0, 100.0, 75.0, 50.0),
    "impulse_noise": (0.01, 0.02, 0.03, 0.05, 0.07),
    "defocus_blur": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1.0, 0.2), (1.5, 0.1)),
    "glass_blur": ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    "motion_blur": ((6, 1.0), (6, 1.5), (6, 2.0), (8, 2.0), (9, 2.5)),
    "zoom_blur": ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
    "snow": (
        Snow(0.1, 0.2, 1.0, 0.6, 8, 3.0, 0.95),
        Snow(0.1, 0.2, 1.0, 0.5, 10, 4.0, 0.9),
        Snow(0.15, 0.3, 1.75, 0.55, 10, 4.0, 0.9),
        Snow(0.25, 0.3, 2.25, 0.6, 12, 6.0, 0.85),
        Snow(0.3, 0.3, 1.25, 0.65, 14, 12.0, 0.8),
    ),
    "frost": (
        Frost(1.0, 0.2, 5),
        Frost(1.0, 0.3, 5),
        Frost(0.9, 0.4, 5),
        Frost(0.85, 0.4, 5),
        Frost(0.75, 0.45, 5),
    ),
    "fog": ((0.2, 3.0), (0.5, 3.0), (0.75, 2.5), (1.0, 2.0), (1.5, 1.75)),
    "brightness": (0.05, 0.1, 0.15, 0.2, 0.3),
    "contrast": (0.75, 0.5, 0.4, 0.3, 0.15),
    "elastic_transform": (
        Elastic(0.0, 0.0, 32 * 0.08),
        Elastic(32 * 0.05, 32 * 0.2, 32 * 0.07),
        Elastic(32 * 0.08, 32 * 0.06, 32 * 0.06),
        Elastic(32 * 0.1, 32 * 0.04, 32 * 0.05),
        Elastic(32 * 0.1, 32 * 0.03, 32 * 0.03),
    ),
    "pixelate": (0.95, 0.9, 0.85, 0.75, 0.65),
    "jpeg_compression": (80, 65, 58, 50, 40),
    "speckle_noise": (0.06, 0.1, 0.12, 0.16, 0.2),
    "gaussian_blur": (0.4, 0.6, 0.7, 0.8, 1.0),
    "spatter": (
        Spatter(0.62, 0.1, 0.7, 0.7, 0.5, is_mud=False),
        Spatter(0.65, 0.1, 0.8, 0.7, 0.5, is_mud=False),
        Spatter(0.65, 0.3, 1.0, 0.69, 0.5, is_mud=False),
        Spatter(0.65, 0.1, 0.7, 0.69, 0.6, is_mud=True),
        Spatter(0.65, 0.1, 0.5, 0.68, 0.6, is_mud=True),
    ),
    "saturate": ((0.3, 0.0), (0.1, 0.0), (1.5, 0.0), (2.0, 0.1), (2.5, 0.2)),
}

IMAGENET: Constants = {
    "gaussian_noise": (0.08, 0.12, 0.18, 0.26, 0.38),
    "shot_noise": (60.0, 25.0, 12.0, 5.0, 3.0),
    "impulse_noise": (0.03, 0.06, 0.09, 0.17, 0.27),
    "defocus_blur": ((3.0, 0.1), (4.0, 0.5), (6.0, 0.5), (8.0, 0.5), (10.0, 0.5)),
    "glass_blur": ((0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    "motion_blur": ((10, 3.0), (15, 5.0), (15, 8.0), (15, 12.0), (20, 15.0)),
    "zoom_blur": ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
    "snow": (
        Snow(0.1, 0.3, 3.0, 0.5, 10, 4.0, 0.8),
        Snow(0.2, 0.3, 2.0, 0.5, 12, 4.0, 0.7),
        Snow(0.55, 0.3, 4.0, 0.9, 12, 8.0, 0.7),
        Snow(0.55, 0.3, 4.5, 0.85, 12, 8.0, 0.65),
        Snow(0.55, 0.3, 2.5, 0.85, 12, 12.0, 0.55),
    ),
    "frost": (
        Frost(1.0, 0.4, 1),
        Frost(0.8, 0.6, 1),
        Frost(0.7, 0.7, 1),
        Frost(0.65, 0.7, 1),
        Frost(0.6, 0.75, 1),
    ),
    "fog": ((1.5, 2.0), (2.0, 2.0), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4)),
    "brightness": (0.1, 0.2, 0.3, 0.4, 0.5),
    "contrast": (0.4, 0.3, 0.2, 0.1, 0.05),
    # 244 for 224 is a slip of the published script, and so part of the published images.
    "elastic_transform": (
        Elastic(244 * 2, 244 * 0.7, 244 * 0.1),
        Elastic(244 * 2, 244 * 0.08, 244 * 0.2),
        Elastic(244 * 0.05, 244 * 0.01, 244 * 0.02),
        Elastic(244 * 0.07, 244 * 0.01, 244 * 0.02),
        Elastic(244 * 0.12, 244 * 0.01, 244 * 0.02),
    ),
    "pixelate": (0.6, 0.5, 0.4, 0.3, 0.25),
    "jpeg_compression": (25, 18, 15, 10, 7),
    "speckle_noise": (0.15, 0.2, 0.35, 0.45, 0.6),
    "gaussian_blur": (1.0, 2.0, 3.0, 4.0, 6.0),
    "spatter": (
        Spatter(0.65, 0.3, 4.0, 0.69, 0.6, is_mud=False),
        Spatter(0.65, 0.3, 3.0, 0.68, 0.6, is_mud=False),
        Spatter(0.65, 0.3, 2.0, 0.68, 0.5, is_mud=False),
        Spatter(0.65, 0.3, 1.0, 0.65, 1.5, is_mud=True),
        Spatter(0.67, 0.4, 1.0, 0.65, 1.5, is_mud=True),
    ),
    "saturate": ((0.3, 0.0), (0.1, 0.0), (2.0, 0.0), (5.0, 0.1), (20.0, 0.2)),
}

CONSTANTS: Mapping[str, Constants] = MappingProxyType({"cifar10": CIFAR10, "imagenet": IMAGENET})
