"""Ranges of activations: histograms, percentiles, and the range of least squared error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmt.quantization import FloatGraph, FloatOp, FloatTensor, activation_ranges, quantize
from pmt.quantization.float_forward import batch_size, live_elements
from pmt.quantization.ranges import BINS, Histogram, least_error_range, scale_and_zero_point


def histogram(*batches: np.ndarray) -> Histogram:
    result = Histogram()
    for batch in batches:
        assert result.add(batch.astype(np.float32))
    return result


def pixels_through(weight: float = 1.0) -> FloatGraph:
    """A network of one weight on one pixel / 255."""
    op = FloatOp("fully_connected", "dense", (0,), 1, weights=np.array([[weight]], np.float32))
    return FloatGraph(
        [FloatTensor("image", 1, 1, 1), FloatTensor("dense", 1, 1, 1)], [op], 0, 1, (0.0,), (255.0,)
    )


def squared_error(values: np.ndarray, low: float, high: float) -> float:
    scale, zero_point = scale_and_zero_point(low, high)
    steps = np.clip(np.rint(values / scale) + zero_point, -128, 127) - zero_point
    return float(np.mean((values - steps * scale) ** 2))


def test_bins_hold_every_value_once_and_zeros_apart():
    counted = histogram(np.array([0.0, 0.5, 1.0, -0.25, 0.0]))
    # -0.25 .. 1 needs a width of 2^-13: with 2^-14 it would be 20,481 bins.
    assert counted.width == 2.0**-13
    assert (counted.low, counted.high, counted.zeros, counted.total) == (-0.25, 1.0, 2, 5)
    edges, counts = counted.bins()
    assert edges.tolist() == [-0.25, 0.5, 1.0]
    assert counts.tolist() == [1.0, 1.0, 1.0]


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(
        st.one_of(
            st.just(0.0), st.floats(-1e6, 1e6, width=32), st.floats(-(2.0**-10), 2.0**-10, width=32)
        ),
        min_size=2,
        max_size=60,
    ),
    cut=st.integers(1, 59),
)
def test_a_histogram_does_not_depend_on_the_batches(values, cut):
    array = np.array(values, np.float32)
    cut = min(cut, len(array) - 1)
    whole, parts = histogram(array), histogram(array[:cut], array[cut:])
    assert (whole.low, whole.high, whole.zeros) == (parts.low, parts.high, parts.zeros)
    assert whole.width == parts.width
    assert whole.total == parts.total == len(array)
    for one, other in zip(whole.bins(), parts.bins(), strict=True):
        assert one.tolist() == other.tolist()
    for share in (0.0, 0.01, 0.5, 0.99, 1.0):
        exact = float(np.quantile(array, share, method="inverted_cdf"))
        assert whole.quantile(share) == pytest.approx(exact, abs=whole.width)


def test_memory_is_bounded_however_far_an_outlier_lies():
    counted = histogram(np.full(1000, 1e-6), np.array([1e6]), np.array([-3e30]))
    assert len(counted._counts) <= BINS
    assert counted.total == 1002
    assert counted.bins()[1].tolist() == [1.0, 1001.0]


def test_zeros_alone_have_no_bins_and_what_is_not_finite_is_refused():
    counted = histogram(np.zeros(5))
    assert (counted.width, counted.total) == (0.0, 5)
    assert counted.quantile(0.999) == 0.0
    assert least_error_range(counted) == (0.0, 0.0)
    assert not counted.add(np.array([1.0, np.nan], np.float32))
    assert not counted.add(np.array([np.inf], np.float32))
    assert counted.total == 5


def test_the_range_of_least_error_cuts_an_outlier_and_keeps_an_even_spread():
    r = np.random.default_rng(0)
    even = r.uniform(-1, 1, 100_000)
    low, high = least_error_range(histogram(even))
    assert low == pytest.approx(-1, abs=0.01)
    assert high == pytest.approx(1, abs=0.01)

    normal = r.normal(0, 1, 1_000_000)
    # The least of step^2 / 12 plus the clipped tails of a normal distribution, at 255 steps.
    best = least_error_range(histogram(normal))
    assert best == (pytest.approx(-3.92, abs=0.15), pytest.approx(3.92, abs=0.15))
    low, high = least_error_range(histogram(np.append(normal, 12.0)))
    assert low == pytest.approx(-3.92, abs=0.15)
    assert 3.9 < high < 4.5


@pytest.mark.parametrize("seed", range(4))
def test_the_range_of_least_error_is_the_best_of_an_exhaustive_search(seed):
    r = np.random.default_rng(seed)
    values = np.maximum(r.laplace(r.normal(), 1.0, 4_000), -1.0 if seed % 2 else 0.0)
    low, high = least_error_range(histogram(values))
    found = squared_error(values.astype(np.float32), low, high)
    ends = np.linspace(1 / 16, 1, 31)
    lows = ends if values.min() < 0 else [1.0]
    best = min(
        squared_error(values, min(values.min(), 0) * a, values.max() * b)
        for a in lows
        for b in ends
    )
    assert found <= best * 1.02
    assert found <= squared_error(values, min(values.min(), 0), values.max()) * 1.001


def test_ranges_of_a_network_by_each_method():
    images = np.full((2000, 1, 1, 1), 51, np.uint8)
    images[7] = 255
    graph = pixels_through()
    assert activation_ranges(graph, images)[1] == (0.0, 1.0)
    cut = activation_ranges(graph, images, method="percentile", percentile=99.9)
    assert cut[1][1] == pytest.approx(0.2, abs=2**-13)
    assert activation_ranges(graph, images, method="percentile")[1][1] > 0.99
    # One value in 2,000 is off by 0.8, the others by nothing where 0.2 is on the grid.
    assert activation_ranges(graph, images, method="mse")[1][1] > 0.9
    assert quantize(graph, images, ranges="mse").tensors[1].zero_point == -127


def test_progress_counts_the_images():
    seen = []
    activation_ranges(
        pixels_through(),
        np.zeros((130, 1, 1, 1), np.uint8),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(64, 130), (128, 130), (130, 130)]


def test_batches_shrink_where_activations_are_large():
    graph = pixels_through()
    assert live_elements(graph) == 2
    assert batch_size(graph) == 64
    graph.tensors[1] = FloatTensor("wide", 512, 512, 16)
    assert live_elements(graph) == 512 * 512 * 16 + 1
    assert batch_size(graph) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"method": "entropy"},
            "ranges 'entropy' are unknown; choose one of minmax, percentile, mse",
        ),
        ({"method": "mse", "percentile": 99.0}, "percentile is 99.0, but the ranges are 'mse'"),
        ({"percentile": 100.0}, "percentile is 100.0, but the ranges are 'minmax'"),
        ({"method": "percentile", "percentile": 50.0}, "must be above 50 and at most 100"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        activation_ranges(pixels_through(), np.zeros((8, 1, 1, 1), np.uint8), **options)


@pytest.mark.parametrize("method", ["minmax", "percentile", "mse"])
def test_an_activation_that_is_not_finite_is_named(method):
    images = np.full((8, 1, 1, 1), 255, np.uint8)
    graph = pixels_through(3e38)
    graph.input_std = (0.01,)
    with (
        np.errstate(over="ignore"),
        pytest.raises(ValueError, match="activation 'dense' is not finite"),
    ):
        activation_ranges(graph, images, method=method)
