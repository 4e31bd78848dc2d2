"""Speckle noise, Gaussian blur and saturation: statistics and exact values."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest

from pmt.corruptions import corrupt


@pytest.mark.parametrize(
    ("severity", "deviation"), [(1, 6.0), (2, 10.0), (3, 12.0), (4, 16.0), (5, 20.0)]
)
def test_speckle_noise_grows_with_the_value(severity: int, deviation: float) -> None:
    noisy = corrupt(np.full((40, 32, 32, 3), 100, np.uint8), "speckle_noise", severity)
    assert noisy.mean() == pytest.approx(99.5, abs=4 * deviation / np.sqrt(noisy.size))
    assert noisy.var() == pytest.approx(deviation**2 + 1 / 12, rel=0.02)
    assert corrupt(np.zeros((2, 8, 8, 3), np.uint8), "speckle_noise", severity).max() == 0


@pytest.mark.parametrize(
    ("severity", "centre", "beside"),
    [(1, 215, 9), (2, 112, 28), (3, 82, 29), (4, 63, 29), (5, 40, 24)],
)
def test_gaussian_blur_of_a_point(severity: int, centre: int, beside: int) -> None:
    # The literals are those of scipy.ndimage.gaussian_filter, mode "nearest", truncate 4.
    image = np.zeros((1, 15, 15, 1), np.uint8)
    image[0, 7, 7] = 255
    blurred = corrupt(image, "gaussian_blur", severity)[0, :, :, 0]
    assert (blurred[7, 7], blurred[7, 8], blurred[6, 7]) == (centre, beside, beside)
    np.testing.assert_array_equal(blurred, blurred.T)
    np.testing.assert_array_equal(blurred, blurred[::-1])


def test_gaussian_blur_keeps_what_is_flat_up_to_the_border() -> None:
    blurred = corrupt(np.full((1, 5, 7, 3), 200, np.uint8), "gaussian_blur", 5)
    assert set(np.unique(blurred)) <= {199, 200}


@pytest.mark.parametrize(
    ("severity", "scale", "shift"),
    [(1, 0.3, 0.0), (2, 0.1, 0.0), (3, 1.5, 0.0), (4, 2.0, 0.1), (5, 2.5, 0.2)],
)
def test_saturate_agrees_with_the_way_through_hsv(
    severity: int, scale: float, shift: float
) -> None:
    n, y, x, c = np.indices((2, 9, 14, 3))
    images = ((n * 31 + y * 17 + x * 11 + c * 71 + x * y * (c + 1)) % 256).astype(np.uint8)
    images[0, 0, :2] = [[0], [90]]
    result = corrupt(images, "saturate", severity)
    expected = np.empty(images.shape)
    for place in np.ndindex(images.shape[:3]):
        hue, saturation, value = colorsys.rgb_to_hsv(*(images[place] / 255.0))
        changed = min(saturation * scale + shift, 1.0)
        expected[place] = np.array(colorsys.hsv_to_rgb(hue, changed, value)) * 255
    assert (result <= expected + 1e-6).all()
    assert (result > expected - 1 - 1e-6).all()


def test_saturate_leaves_one_channel_alone() -> None:
    image = np.full((1, 4, 4, 1), 51, np.uint8)
    assert abs(int(corrupt(image, "saturate", 5)[0, 0, 0, 0]) - 51) <= 1
