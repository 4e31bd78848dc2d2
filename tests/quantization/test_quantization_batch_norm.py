"""Folding a batch norm into the layer before it."""

from __future__ import annotations

import numpy as np
import pytest

from pmt.quantization import fold_batch_norm


def test_folded_batch_norm_equals_layer_and_batch_norm():
    r = np.random.default_rng(1)
    weights, bias = r.normal(size=(5, 7)), r.normal(size=5)
    gamma, beta, mean = r.normal(size=(3, 5))
    variance = r.uniform(0.1, 2.0, 5)
    x = r.normal(size=(4, 7))
    expected = (x @ weights.T + bias - mean) / np.sqrt(variance + 1e-3) * gamma + beta
    folded, folded_bias = fold_batch_norm(
        weights,
        bias,
        channel_axis=0,
        gamma=gamma,
        beta=beta,
        mean=mean,
        variance=variance,
        epsilon=1e-3,
    )
    assert folded.dtype == folded_bias.dtype == np.float32
    assert x @ folded.T + folded_bias == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_folding_scales_the_last_axis_of_depthwise_weights():
    ones = np.ones(2)
    folded, bias = fold_batch_norm(
        np.ones((3, 3, 2)),
        np.zeros(2),
        channel_axis=2,
        gamma=np.array([2.0, 4.0]),
        beta=ones,
        mean=ones,
        variance=4 * ones,
        epsilon=0.0,
    )
    assert folded[1, 2].tolist() == [1.0, 2.0]
    assert bias.tolist() == [0.0, -1.0]  # 1 - 1 * gamma / 2


def test_folding_names_the_vector_that_does_not_fit():
    good = dict.fromkeys(("gamma", "beta", "mean", "variance"), np.ones(2))
    weights = np.ones((2, 3))
    with pytest.raises(ValueError, match=r"gamma has shape \(3,\).*2 output channels"):
        fold_batch_norm(
            weights, np.ones(2), channel_axis=0, epsilon=0.0, **{**good, "gamma": np.ones(3)}
        )
    with pytest.raises(ValueError, match=r"variance \+ epsilon .* must be positive"):
        fold_batch_norm(
            weights, np.ones(2), channel_axis=0, epsilon=0.0, **{**good, "variance": np.zeros(2)}
        )
