"""Gaussian, shot, impulse and speckle noise: closed-form statistics."""

import numpy as np
import pytest
from corruption_inputs import flat

from pmt.corruptions import corrupt


@pytest.mark.parametrize(
    ("severity", "deviation"), [(1, 10.2), (2, 15.3), (3, 20.4), (4, 22.95), (5, 25.5)]
)
def test_gaussian_noise_has_its_deviation(severity, deviation):
    noisy = corrupt(flat(128), "gaussian_noise", severity).astype(np.float64)
    # Truncation takes half a gray level off the mean and adds 1/12 to the variance.
    assert noisy.mean() == pytest.approx(127.5, abs=4 * deviation / np.sqrt(noisy.size))
    assert noisy.var() == pytest.approx(deviation**2 + 1 / 12, rel=0.02)


@pytest.mark.parametrize(
    ("severity", "photons", "mean", "variance"),
    [
        (1, 500, 101.512, 52.953),
        (2, 250, 101.513, 108.222),
        (3, 100, 101.532, 260.139),
        (4, 75, 101.600, 346.880),
        (5, 50, 101.547, 521.165),
    ],
)
def test_shot_noise_has_the_moments_of_counts(severity, photons, mean, variance):
    # 102 is 0.4 of full scale. The literals are sums over the Poisson distribution of mean
    # 0.4 photons, each count truncated to its gray level: near 255^2 * 0.4 / photons.
    noisy = corrupt(flat(102), "shot_noise", severity).astype(np.float64)
    assert noisy.mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / noisy.size))
    assert noisy.var() == pytest.approx(variance, rel=0.02)
    if severity == 5:
        assert set(np.unique(noisy)) <= {int(count * 255 / 50 + 1e-9) for count in range(51)}


@pytest.mark.parametrize(
    ("severity", "amount"), [(1, 0.01), (2, 0.02), (3, 0.03), (4, 0.05), (5, 0.07)]
)
def test_impulse_noise_is_half_salt_half_pepper(severity, amount):
    noisy = corrupt(flat(77), "impulse_noise", severity)
    assert set(np.unique(noisy)) == {0, 77, 255}
    error = 4 * np.sqrt(amount / 2 / noisy.size)
    assert (noisy == 0).mean() == pytest.approx(amount / 2, abs=error)
    assert (noisy == 255).mean() == pytest.approx(amount / 2, abs=error)
    # Channels are hit on their own: all three at once only by chance.
    assert (noisy != 77).all(axis=3).mean() < 0.002


@pytest.mark.parametrize(
    ("severity", "deviation"), [(1, 6.0), (2, 10.0), (3, 12.0), (4, 16.0), (5, 20.0)]
)
def test_speckle_noise_grows_with_the_value(severity, deviation):
    noisy = corrupt(np.full((40, 32, 32, 3), 100, np.uint8), "speckle_noise", severity)
    assert noisy.mean() == pytest.approx(99.5, abs=4 * deviation / np.sqrt(noisy.size))
    assert noisy.var() == pytest.approx(deviation**2 + 1 / 12, rel=0.02)
    assert corrupt(np.zeros((2, 8, 8, 3), np.uint8), "speckle_noise", severity).max() == 0
