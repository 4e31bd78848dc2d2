"""Ranges of activations: histograms, the least squared error, and room for the logits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pmt
from pmt.quantization import (
    FloatGraph,
    FloatOp,
    FloatTensor,
    activation_ranges,
    cover_logits,
    quantize_graph,
)
from pmt.quantization.float_forward import batch_size, live_elements
from pmt.quantization.ranges import (
    BINS,
    Histogram,
    fit_outputs,
    least_error_range,
    scale_and_zero_point,
)


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


def test_bins_hold_every_value_but_zeros_once():
    counted = histogram(np.array([0.0, 0.5, 1.0, -0.25, 0.0]))
    # -0.25 .. 1 needs a width of 2^-13: with 2^-14 it would be 20,481 bins.
    assert counted.width == 2.0**-13
    assert (counted.low, counted.high) == (-0.25, 1.0)
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
    assert (whole.low, whole.high) == (parts.low, parts.high) == (array.min(), array.max())
    assert whole.width == parts.width
    for one, other in zip(whole.bins(), parts.bins(), strict=True):
        assert one.tolist() == other.tolist()
    if array.any():
        places = np.floor(array[array != 0] / np.float64(whole.width)) * whole.width
        edges, counts = np.unique(places, return_counts=True)
        assert [edges.tolist(), counts.tolist()] == [one.tolist() for one in whole.bins()]


def test_memory_is_bounded_however_far_an_outlier_lies():
    counted = histogram(np.full(1000, 1e-6), np.array([1e6]), np.array([-3e30]))
    assert len(counted._counts) <= BINS
    assert counted.bins()[1].tolist() == [1.0, 1001.0]


def test_zeros_alone_have_no_bins_and_what_is_not_finite_is_refused():
    counted = histogram(np.zeros(5))
    assert (counted.width, len(counted.bins()[1])) == (0.0, 0)
    assert least_error_range(counted) == (0.0, 0.0)
    assert not counted.add(np.array([1.0, np.nan], np.float32))
    assert not counted.add(np.array([np.inf], np.float32))
    assert (counted.low, counted.high) == (0.0, 0.0)


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
    # One value in 2,000 is off by 0.8, the others by nothing where 0.2 is on the grid.
    assert activation_ranges(graph, images, method="mse")[1][1] > 0.9
    assert quantize_graph(graph, images, ranges="mse").tensors[1].zero_point == -127


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


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="ranges='entropy' is unknown; choose one of minmax, mse"):
        activation_ranges(pixels_through(), np.zeros((8, 1, 1, 1), np.uint8), method="entropy")


@pytest.mark.parametrize("method", ["minmax", "mse"])
def test_an_activation_that_is_not_finite_is_named(method):
    images = np.full((8, 1, 1, 1), 255, np.uint8)
    graph = pixels_through(3e38)
    graph.input_std = (0.01,)
    with (
        np.errstate(over="ignore"),
        pytest.raises(ValueError, match="activation 'dense' is not finite"),
    ):
        activation_ranges(graph, images, method=method)


MODEL = "fashion_mnist_dscnn"


def with_output(model, scale, zero_point):
    graph = model.to_graph()
    output = replace(graph.tensors[graph.output], scale=scale, zero_point=zero_point)
    graph.tensors[graph.output] = output
    return pmt.Model.from_graph(graph)


def output_of(model):
    tensor = model.to_graph().tensors[model.core.output_tensor]
    return tensor.scale, tensor.zero_point


def test_logits_stay_and_the_int8_output_holds_them():
    images = pmt.datasets.bundled("test").images[:200]
    narrow = with_output(pmt.load(MODEL), 0.01, 0)
    wide = cover_logits(narrow, images)
    logits = narrow.logits(images)
    assert output_of(narrow) == pytest.approx((0.01, 0))
    assert np.array_equal(wide.logits(images), logits)
    cut = [np.abs(m.logits(images, int8_logits=True) - logits).max() for m in (narrow, wide)]
    assert cut[0] > 10.0
    assert cut[1] <= 0.51 * output_of(wide)[0]
    assert wide.core.has_linear_head


def test_an_output_that_suffices_keeps_its_range():
    images = pmt.datasets.bundled("test").images[:20]
    model = cover_logits(pmt.load(MODEL), images)
    again = cover_logits(model, images)
    assert again.image() == model.image()
    assert again is not model


@pytest.mark.parametrize(
    ("found", "scale", "zero_point"),
    [
        ((-12.8, 12.7), 0.1, 0),  # its own ends
        ((-12.849, 12.749), 0.1, 0),  # what rounding reaches
        ((-1.0, 25.6), (12.8 + 1.125 * 25.6) / 255, -50),
        ((-25.6, 0.0), (1.125 * 25.6 + 12.7) / 255, 49),
        ((-30.0, 40.0), 1.125 * 70 / 255, -19),
        ((-3.0, 3.4), 0.1, 0),  # a quarter
        ((-3.0, 3.3), 1.125 * 6.3 / 255, -7),
        ((0.0, 0.0), 0.1, 0),
    ],
)
def test_a_range_changes_where_it_is_exceeded_or_hardly_used(found, scale, zero_point):
    model = with_output(pmt.load(MODEL), 0.1, 0)
    fit_outputs(model, {model.core.output_tensor: found})
    assert output_of(model) == (pytest.approx(scale, rel=1e-6), zero_point)


def test_an_output_without_negative_logits_is_no_relu():
    model = with_output(pmt.load(MODEL), 0.1, -127)
    fit_outputs(model, {model.core.output_tensor: (-0.1, 1000.0)})
    assert output_of(model)[1] == -127
    assert model.core.has_linear_head


def test_wrong_arguments_are_named():
    images = pmt.datasets.bundled("test").images[:2]
    with pytest.raises(TypeError, match="model is None"):
        cover_logits(None, images)
    with pytest.raises(ValueError, match=r"model: cover_logits\(\) needs a linear last layer"):
        cover_logits(with_output(pmt.load(MODEL), 0.1, -128), images)
