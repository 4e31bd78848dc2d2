"""Noise probes, and the share of noise in what a layer sees."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmt.train.prepare.alignment import noise_probes, noise_share


def by_definition(images):
    """Noise probes by the definition, pixel by pixel."""
    pairs = []
    for i, image in enumerate(images):
        other = images[(i + 1) % len(images)].astype(int)
        height, width, _ = image.shape
        radius = max(1, round(min(height, width) / 16))
        changed = image.astype(int)
        for y in range(height):
            for x in range(width):
                near = other[
                    max(0, y - radius) : y + radius + 1, max(0, x - radius) : x + radius + 1
                ]
                count = near.shape[0] * near.shape[1]
                # Rounded to the nearest whole number, halves up.
                mean = (2 * near.sum((0, 1)) + count) // (2 * count)
                changed[y, x] += other[y, x] - mean
        pairs += [image, np.clip(changed, -128, 127).astype(np.int8)]
    return np.array(pairs)


@given(
    st.integers(1, 3),
    st.integers(1, 26),
    st.integers(1, 26),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
)
def test_noise_probes_are_those_of_the_definition(count, height, width, channels, seed):
    shape = (count, height, width, channels)
    images = np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)
    pairs = noise_probes(images)
    assert pairs.dtype == np.int8
    assert np.array_equal(pairs, by_definition(images))


def test_a_flat_image_adds_no_noise():
    images = np.zeros((2, 8, 8, 1), np.int8)
    images[0, 4, 4] = 100
    pairs = noise_probes(images)
    assert np.array_equal(pairs[0], pairs[1])  # the second image is flat
    # The first is one bright pixel: it loses a ninth of it, and its neighbors get that below them.
    assert pairs[3, 3:6, 3:6, 0].tolist() == [[-11, -11, -11], [-11, 89, -11], [-11, -11, -11]]
    assert int(np.count_nonzero(pairs[3])) == 9


def covariances(*lags):
    """One group of one channel under a 2x2 window: (0, 0), (0, 1), (1, -1), (1, 0), (1, 1)."""
    return np.array([lags], np.float32)


def test_noise_share_is_what_clean_images_have_not():
    clean = covariances(10, 8, 0, 8, 0)  # roughness 0.2
    rough = covariances(5, 3, 0, 2, 0)  # roughness 0.5
    assert noise_share(clean, rough, (2, 2)) == pytest.approx(0.6)
    assert noise_share(clean, clean, (2, 2)) == 0.0
    assert noise_share(rough, clean, (2, 2)) == 0.0


def test_noise_share_goes_by_the_farthest_places_of_a_window():
    # A 1x3 window: distances 0, 1, 2; a 3x1 one the same, downwards.
    clean, noisy = covariances(10, 0, 9), covariances(10, 9, 5)
    assert noise_share(clean, noisy, (1, 3)) == pytest.approx(0.8)
    assert noise_share(clean, noisy, (3, 1)) == pytest.approx(0.8)


def test_noise_share_of_channels_that_a_layer_mixes_leaves_pairs_out():
    # Two channels, a 1x2 window: variances 6 and 2, at distance 1 3 and 1; pairs do not matter.
    clean = np.array([[6, 9, 9, 2, 5, 9, 9, 1]], np.float32)
    found = np.array([[6, 0, 0, 2, 3, 0, 0, 1]], np.float32)
    assert noise_share(clean, found, (1, 2)) == pytest.approx(0.5)


def test_constant_groups_have_no_say():
    clean = np.array([[0, 0], [4, 3]], np.float32)
    found = np.array([[0, 0], [4, 2]], np.float32)
    assert noise_share(clean, found, (1, 2)) == pytest.approx(0.5)
    assert noise_share(clean, np.zeros((2, 2), np.float32), (1, 2)) == 0.0
