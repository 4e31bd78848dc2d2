"""The constants of ImageNet-C, and what the severities do to real images."""

from __future__ import annotations

import itertools
import zlib
from pathlib import Path

import numpy as np
import pytest
from frost_overlays import write_overlays

import pmt
from pmt.corruptions import corrupt, names
from pmt.corruptions.constants import CIFAR10, IMAGENET

GOLDEN_IMAGENET = {
    "gaussian_noise": 0x788C7914,
    "shot_noise": 0x156D943F,
    "impulse_noise": 0x1B002301,
    "defocus_blur": 0xB9FCF869,
    "glass_blur": 0x3CB80715,
    "motion_blur": 0xC97A3E84,
    "zoom_blur": 0x1E74F49E,
    "snow": 0x012553D2,
    "frost": 0xE833E9EB,
    "fog": 0x8EC806D2,
    "brightness": 0xAEEBDCCF,
    "contrast": 0x1CCF3D08,
    "elastic_transform": 0x3E3D34B7,
    "pixelate": 0xE7B7CB25,
    "speckle_noise": 0xCCA29704,
    "gaussian_blur": 0x98682137,
    "spatter": 0xBD0AF392,
    "saturate": 0x93F728B7,
}


@pytest.fixture(scope="module")
def overlays(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("overlays") / "frost"
    write_overlays(folder)
    return folder


@pytest.fixture(scope="module")
def photographs(cifar10_dir: Path) -> np.ndarray:
    return pmt.datasets.load(cifar10_dir, split="test").images[:150]


def test_every_corruption_has_both_constants() -> None:
    assert tuple(CIFAR10) == tuple(IMAGENET) == names()
    for table in (CIFAR10, IMAGENET):
        assert {len(constants) for constants in table.values()} == {5}


@pytest.mark.parametrize("name", GOLDEN_IMAGENET)
def test_the_pixels_of_imagenet_c_stay_the_same(name: str, overlays: Path) -> None:
    n, y, x, c = np.indices((8, 9, 14, 3))
    images = ((n * 31 + y * 17 + x * 11 + c * 71 + x * y * (c + 1)) % 256).astype(np.uint8)
    result = corrupt(images, name, 3, seed=7, constants="imagenet", overlays=overlays)
    assert zlib.crc32(result.tobytes()) == GOLDEN_IMAGENET[name]
    for index in (0, 5):
        alone = corrupt(
            images[index : index + 1],
            name,
            3,
            seed=7,
            indices=[index],
            constants="imagenet",
            overlays=overlays,
        )
        np.testing.assert_array_equal(alone[0], result[index])


def test_a_data_set_passes_the_constants_on() -> None:
    images = np.arange(4 * 64 * 3).reshape(4, 8, 8, 3).astype(np.uint8)
    dataset = pmt.datasets.Dataset(
        images=images, labels=np.zeros(4, np.int64), class_names=("a",), name="made"
    )
    strong = corrupt(dataset, "contrast", 5, constants="imagenet")
    np.testing.assert_array_equal(
        strong.images, corrupt(images, "contrast", 5, constants="imagenet")
    )
    assert (strong.images != corrupt(dataset, "contrast", 5).images).any()


def errors_by_severity(images: np.ndarray, name: str, overlays: Path) -> list[float]:
    clean = images.astype(np.float64)
    return [
        float(((corrupt(images, name, severity, overlays=overlays) - clean) ** 2).mean())
        for severity in (1, 2, 3, 4, 5)
    ]


# From one severity to the next the error grows (+), falls (-) or stays within 8 % (=): the
# published constants are not ordered by it.
STEPS = {
    "glass_blur": "=-+-",
    "motion_blur": "++=+",
    "frost": "++-=",
    "elastic_transform": "=---",
    "spatter": "++=+",
    "saturate": "+-++",
}


@pytest.mark.parametrize("name", names())
def test_the_mean_squared_error_grows_with_the_severity(
    name: str, photographs: np.ndarray, shared: Path
) -> None:
    errors = errors_by_severity(photographs, name, shared / "data" / "frost")
    steps = ""
    for weaker, stronger in itertools.pairwise(errors):
        steps += "=" if abs(stronger / weaker - 1) < 0.08 else "+" if stronger > weaker else "-"
    assert steps == STEPS.get(name, "++++"), errors


@pytest.mark.parametrize(
    ("name", "severity", "least", "most"),
    [
        ("snow", 1, 8, 14),
        ("snow", 5, 44, 58),
        ("frost", 1, 25, 36),
        ("frost", 5, 35, 46),
        ("brightness", 5, 50, 60),
        ("spatter", 3, 4, 9),
        ("spatter", 5, -7, -3),
        ("saturate", 2, 10, 20),
        ("saturate", 5, -35, -25),
        ("fog", 5, -8, 4),
        ("defocus_blur", 5, -1, 0),
        ("zoom_blur", 5, -2, 0.5),
        ("motion_blur", 5, -1.5, 0.5),
        ("glass_blur", 5, -2, 1),
        ("elastic_transform", 5, -1.5, 0.5),
        ("pixelate", 5, -0.5, 1),
        ("jpeg_compression", 5, -0.5, 0.5),
    ],
)
def test_what_a_corruption_does_to_the_mean(
    name: str, severity: int, least: float, most: float, photographs: np.ndarray, shared: Path
) -> None:
    result = corrupt(photographs, name, severity, overlays=shared / "data" / "frost")
    assert least < result.mean() - photographs.mean() < most
