"""Defocus, gaussian, glass, motion and zoom blur: slow definitions, the published programs."""

import numpy as np
import pytest
from corruption_inputs import constants_of, made_images
from scipy import ndimage

from pmt.corruptions import corrupt
from pmt.corruptions.blur import disk, gaussian_blur, glass_blur, motion_blur, trail, zoom_blur
from pmt.corruptions.catalog import CATALOG


def point(side: int = 33) -> np.ndarray:
    image = np.zeros((1, side, side, 1), np.uint8)
    image[0, side // 2, side // 2] = 255
    return image


def generators(seeds: range) -> list[np.random.Generator]:
    return [np.random.default_rng(seed) for seed in seeds]


@pytest.mark.parametrize(
    ("severity", "center", "beside"),
    [(1, 215, 9), (2, 112, 28), (3, 82, 29), (4, 63, 29), (5, 40, 24)],
)
def test_gaussian_blur_of_a_point(severity, center, beside):
    # The literals are those of scipy.ndimage.gaussian_filter, mode "nearest", truncate 4.
    image = np.zeros((1, 15, 15, 1), np.uint8)
    image[0, 7, 7] = 255
    blurred = corrupt(image, "gaussian_blur", severity)[0, :, :, 0]
    assert (blurred[7, 7], blurred[7, 8], blurred[6, 7]) == (center, beside, beside)
    np.testing.assert_array_equal(blurred, blurred.T)
    np.testing.assert_array_equal(blurred, blurred[::-1])


def test_gaussian_blur_keeps_what_is_flat_up_to_the_border():
    blurred = corrupt(np.full((1, 5, 7, 3), 200, np.uint8), "gaussian_blur", 5)
    assert set(np.unique(blurred)) <= {199, 200}


# OpenCV's GaussianBlur of the disks and filter2D, truncated: around the middle, and how
# many pixels are not black.
@pytest.mark.parametrize(
    ("constants", "severity", "center", "beside", "diagonal", "lit"),
    [
        ("cifar10", 1, 215, 9, 0, 5),
        ("cifar10", 2, 157, 21, 2, 9),
        ("cifar10", 3, 113, 28, 7, 9),
        ("cifar10", 4, 50, 50, 0, 5),
        ("cifar10", 5, 28, 28, 28, 9),
        ("imagenet", 1, 8, 8, 8, 29),
        ("imagenet", 2, 5, 5, 5, 49),
        ("imagenet", 3, 2, 2, 2, 113),
    ],
)
def test_defocus_blur_of_a_point(constants, severity, center, beside, diagonal, lit):
    blurred = corrupt(point(), "defocus_blur", severity, constants=constants)[0, :, :, 0]
    assert blurred[16, 16] == center
    assert blurred[16, 15] == blurred[17, 16] == beside
    assert blurred[15, 15] == blurred[17, 15] == diagonal
    assert np.count_nonzero(blurred) == lit


def test_the_disks_of_defocus_blur():
    for constant in constants_of("defocus_blur"):
        kernel = disk(*constant)
        assert kernel.shape == ((21, 21) if constant[0] == 10.0 else (17, 17))
        # Disks of 8 and 10 pixels touch the edge of their grid, where softening mirrors them.
        total = {8.0: 1.0130, 10.0: 1.0108}.get(constant[0], 1.0)
        assert kernel.sum() == pytest.approx(total, abs=1e-4)
        np.testing.assert_allclose(kernel, kernel.T, atol=1e-15)
        np.testing.assert_allclose(kernel, kernel[::-1], atol=1e-15)
    # 317 pixels lie within 10 pixels of the middle.
    assert disk(10.0, 0.5)[10, 10] == pytest.approx(1 / 317)


@pytest.mark.parametrize(("constants", "severity"), [("cifar10", 3), ("imagenet", 1)])
def test_defocus_blur_pixel_by_pixel(constants, severity):
    images = made_images(count=1, height=9, width=12)
    kernel = disk(*CATALOG["defocus_blur"].constants[constants][severity - 1])
    mirrored = np.pad(images[0] / 255.0, ((8, 8), (8, 8), (0, 0)), mode="reflect")
    expected = np.empty(images.shape[1:])
    for y, x, c in np.ndindex(expected.shape):
        expected[y, x, c] = (mirrored[y : y + 17, x : x + 17, c] * kernel).sum() * 255
    result = corrupt(images, "defocus_blur", severity, constants=constants)[0]
    assert (result <= expected + 1e-6).all()
    assert (result > expected - 1 - 1e-6).all()


@pytest.mark.parametrize(
    ("constant", "shape"),
    [
        ((0.05, 1, 1), (14, 17)),
        ((0.4, 1, 2), (14, 17)),
        ((0.9, 2, 1), (14, 17)),
        ((1.0, 2, 3), (9, 30)),
        ((1.5, 4, 2), (23, 12)),
        ((1.5, 4, 2), (8, 12)),
    ],
)
def test_glass_blur_copies_pixel_after_pixel(constant, shape):
    deviation, reach, passes = constant
    images = made_images(2, *shape)
    displaced = (gaussian_blur(images, deviation, []) * 255).astype(np.uint8)
    height, width = shape
    for image, generator in zip(displaced, generators(range(2)), strict=True):
        size = (passes, max(0, height - 2 * reach), max(0, width - 2 * reach), 2)
        steps = generator.integers(-reach, reach, size=size)
        for step in range(passes):
            for y in range(height - reach, reach, -1):
                for x in range(width - reach, reach, -1):
                    down, right = steps[step, y - reach - 1, x - reach - 1]
                    image[y, x] = image[y + down, x + right]
    np.testing.assert_array_equal(
        glass_blur(images, constant, generators(range(2))), gaussian_blur(displaced, deviation, [])
    )


def test_glass_blur_takes_from_above_and_from_the_left_alone():
    images = np.zeros((200, 32, 32, 1), np.uint8)
    images[:, 10, 10] = 255
    # A blur of 0.05 pixels is none at all.
    lit = corrupt(images, "glass_blur", 1).mean(axis=0)[..., 0] / 255
    assert np.count_nonzero(lit) == 4
    np.testing.assert_allclose(lit[10:12, 10:12], 0.25, atol=0.1)


def test_motion_blur_is_that_of_imagemagick():
    # convert -motion-blur 6x1+30 and 2x1.5-100 of ImageMagick 6.9.11.
    y, x = np.indices((5, 7))
    image = ((y * 67 + x * 41 + y * x * 29) % 256).astype(np.uint8)[None, :, :, None]
    assert trail(image, 6, 1.0, [30.0])[0, :, :, 0].tolist() == [
        [30, 53, 97, 140, 183, 221, 244],
        [92, 163, 127, 53, 125, 189, 229],
        [173, 166, 119, 112, 67, 158, 214],
        [146, 129, 149, 114, 155, 126, 199],
        [72, 138, 128, 177, 98, 96, 186],
    ]
    assert trail(image, 2, 1.5, [-100.0])[0, :, :, 0].tolist() == [
        [0, 38, 79, 120, 161, 202, 243],
        [28, 78, 131, 77, 130, 183, 236],
        [78, 151, 118, 107, 75, 150, 225],
        [141, 132, 148, 99, 114, 109, 211],
        [99, 139, 118, 163, 127, 64, 195],
    ]


@pytest.mark.parametrize(
    ("severity", "tail"),
    [
        (1, [145, 88, 19, 1, 0, 0, 0, 0]),
        (2, [107, 85, 44, 14, 3, 0, 0, 0]),
        (3, [84, 74, 51, 27, 11, 3, 0, 0]),
        (4, [84, 74, 51, 27, 11, 3, 0, 0]),
        (5, [70, 64, 50, 34, 19, 9, 3, 1]),
    ],
)
def test_a_point_leaves_half_a_gaussian_behind(severity, tail):
    radius, deviation = constants_of("motion_blur")[severity - 1]
    blurred = trail(point(), radius, deviation, [0.0])[0, :, :, 0]
    assert blurred[16, 16:8:-1].tolist() == tail
    assert np.count_nonzero(blurred) == np.count_nonzero(blurred[16, :17])


def test_motion_blur_goes_at_most_45_degrees_up_or_down():
    images = np.repeat(point(), 60, axis=0)
    blurred = motion_blur(images, (9, 2.5), generators(range(60)))[..., 0] / 255.0
    weight = blurred.sum(axis=(1, 2))
    down, left = np.indices((33, 33)) - 16
    rows, columns = ((blurred * axis).sum(axis=(1, 2)) / weight for axis in (down, left))
    assert (columns < -0.9).all()
    assert (np.abs(rows) < 1.3 * np.abs(columns)).all()
    assert rows.min() < -0.8
    assert rows.max() > 0.8


def test_the_factors_of_zoom_blur_are_those_of_arange():
    counts = [len(np.arange(1, *each)) for each in constants_of("zoom_blur")]
    assert counts == [7, 12, 16, 21, 26, 12, 16, 11, 13, 11]


def center_enlarged(image: np.ndarray, factor: float) -> np.ndarray:
    """The published definition, for square images, on scipy.ndimage.zoom."""
    side = len(image)
    small = int(np.ceil(side / factor))
    start = (side - small) // 2
    center = image[start : start + small, start : start + small]
    large = ndimage.zoom(center, (factor, factor, 1), order=1)
    cut = (len(large) - side) // 2
    return large[cut : cut + side, cut : cut + side]


@pytest.mark.parametrize("side", [1, 6, 32])
def test_zoom_blur_is_the_mean_of_scipys_zooms(side):
    images = made_images(2, side, side)
    for constant in constants_of("zoom_blur"):
        factors = np.arange(1, *constant)
        result = zoom_blur(images, constant, [])
        for image, blurred in zip(images / 255.0, result, strict=True):
            total = image + sum(center_enlarged(image, factor) for factor in factors)
            np.testing.assert_allclose(blurred, total / (len(factors) + 1), atol=1e-6)


def test_zoom_blur_keeps_the_center_and_moves_the_border_outwards():
    images = np.zeros((1, 33, 33, 1), np.uint8)
    images[0, 15:18] = 255
    blurred = corrupt(images, "zoom_blur", 5)[0, :, :, 0]
    assert blurred[16].min() >= 254
    assert 0 < blurred[14, 16] < 255
    assert blurred[:13].max() == 0


@pytest.mark.parametrize("name", ["defocus_blur", "motion_blur", "zoom_blur"])
@pytest.mark.parametrize("severity", [1, 3, 5])
def test_what_is_flat_stays_to_the_last_level(name, severity):
    levels = np.arange(256, dtype=np.uint8)[:, None, None, None]
    images = np.broadcast_to(levels, (256, 5, 7, 1)).copy()
    np.testing.assert_array_equal(corrupt(images, name, severity), images)
