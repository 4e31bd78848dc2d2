"""Cross-layer equalization: the function stays, the noise falls."""

from dataclasses import replace

import numpy as np
import pytest
from float_networks import graph_of, mobile_network, random_images
from hypothesis import given, settings
from hypothesis import strategies as st

from pmt.quantization import (
    FloatOp,
    equalize,
    float_activations,
    float_logits,
    normalize,
    quantize,
    signal_to_noise,
)
from pmt.quantization.equalization import channel_intervals, scalable_pairs


def names(graph) -> list[tuple[str, str]]:
    return [(graph.ops[p.first].name, graph.ops[p.second].name) for p in scalable_pairs(graph)]


def output_noise(graph, images, **options) -> float:
    result = quantize(graph, images, **options)
    return signal_to_noise(graph, result, images)[-1].signal_to_noise


def two_layers(activation, weights, bias, reads):
    """A pixel through one layer of two channels and a second one that adds them."""
    values, kind = [np.array(v, np.float32) for v in (weights, bias, [reads])], "fully_connected"
    first = FloatOp(kind, "first", (0,), 0, activation=activation, weights=values[0])
    first.bias = values[1]
    second = FloatOp(kind, "second", (1,), 0, weights=values[2])
    return graph_of((1, 1, 1), first, second)


def test_pairs_are_found_through_pads_pools_and_flattening_but_not_past_an_addition():
    assert names(mobile_network(0)) == [
        ("expand", "depth"),
        ("depth", "project"),
        ("mix", "multiply"),
        ("multiply", "head"),
    ]
    graph = mobile_network(0)
    graph.output = 3  # an activation that the caller sees may not be scaled
    assert ("depth", "project") not in names(graph)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    activation=st.sampled_from(["none", "relu", "relu6", (0.0, 1.5), (-0.5, 2.0), (-1.0, np.inf)]),
    uneven=st.sampled_from([1.0, 300.0]),
)
def test_the_function_of_the_network_is_unchanged(seed, activation, uneven):
    graph = mobile_network(seed, activation, uneven=uneven)
    images = random_images(seed, 16, graph)
    extremes = np.stack([np.zeros_like(images[0]), np.full_like(images[0], 255)])
    result = equalize(graph, images[:8]).graph
    assert [op.activation for op in result.ops] == [op.activation for op in graph.ops]
    for pixels in (images, extremes):
        expected = float_logits(graph, pixels)
        found = float_logits(result, pixels)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


def test_factors_from_images_even_out_peaks_before_a_depthwise_layer():
    graph = mobile_network(3, uneven=300.0)
    images = random_images(3, 32, graph)
    before = float_activations(graph, normalize(graph, images))
    done = equalize(graph, images)
    after = float_activations(done.graph, normalize(done.graph, images))
    expand = 2
    peaks = after[expand].max(axis=(0, 1, 2))
    alive = peaks > 0
    assert peaks[alive] == pytest.approx(before[expand].max(), rel=1e-4)
    old = before[expand].max(axis=(0, 1, 2))[alive]
    assert old.max() / old.min() > 30


def test_uneven_channels_are_quantized_with_far_less_noise():
    graph = mobile_network(5, uneven=300.0)
    images = random_images(5, 64, graph)
    plain = output_noise(graph, images)
    assert output_noise(equalize(graph, images).graph, images) > plain + 8
    assert output_noise(graph, images, equalize=True) > plain + 8


def white(level=255):
    return np.full((8, 1, 1, 1), level, np.uint8)


def test_relu6_holds_a_channel_that_may_be_clipped_and_scales_one_that_cannot():
    # Channel 0 reaches 4 at the most, channel 1 reaches 7.
    graph = two_layers("relu6", [[4.0], [7.0]], [0.0, 0.0], [1.0, 16.0])
    done = equalize(graph, white())
    first, second = done.graph.ops
    assert (done.channels, done.held) == (1, 1)
    # s = sqrt(4 / 1) and sqrt(6 / 16), times what leaves the largest peak, 6, as it is.
    assert first.weights.ravel() == pytest.approx([4 / 3.265986, 7.0])
    assert second.weights.ravel() == pytest.approx([3.265986, 16.0])
    assert graph.ops[0].weights.ravel().tolist() == [4.0, 7.0]  # the argument is as it was


def test_a_channel_grows_up_to_the_bound_of_relu6_but_not_beyond():
    # At a pixel of 0.2 the peaks are 1 and 3: s = 1 / 3 would take channel 0, at most 4.2, to 12.6.
    graph = two_layers("relu6", [[4.0], [0.0]], [0.2, 3.0], [9.0, 3.0])
    done = equalize(graph, white(51))
    assert done.held == 0
    assert done.graph.ops[0].weights.ravel() == pytest.approx([4 * 6 / 4.2, 0.0], rel=1e-4)
    assert done.graph.ops[0].weights[0, 0] < 4 * 6 / 4.2
    images = np.arange(256, dtype=np.uint8).reshape(-1, 1, 1, 1)
    expected = float_logits(graph, images)
    assert float_logits(done.graph, images) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("activation", "bias"), [((0.0, 6.0), 7.0), ((-1.0, np.inf), -2.0), ((0.5, np.inf), 0.0)]
)
def test_channels_that_reach_any_other_bound_are_held(activation, bias):
    graph = two_layers(activation, [[1.0], [1.0]], [bias, bias], [9.0, 9.0])
    done = equalize(graph, white())
    assert (done.pairs, done.channels, done.held) == (0, 0, 2)


def test_dead_channels_and_layers_of_zeros_are_left_alone():
    graph = two_layers("relu", [[0.0], [2.0]], [0.0, 0.0], [5.0, 0.0])
    done = equalize(graph, white())
    assert done.channels == 0
    assert done.graph.ops[0].weights.tolist() == [[0.0], [2.0]]
    graph.ops[1].weights = np.zeros((1, 2), np.float32)
    assert equalize(graph, white()).channels == 0


def test_intervals_hold_every_activation_and_are_reached():
    graph = two_layers("none", [[4.0], [-7.0]], [1.0, 2.0], [1.0, 0.5])
    reach = channel_intervals(graph)
    assert (reach[1].low.tolist(), reach[1].high.tolist()) == ([1.0, -5.0], [5.0, 2.0])
    assert (reach[2].low.tolist(), reach[2].high.tolist()) == ([-1.5], [6.0])


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), activation=st.sampled_from(["none", "relu", "relu6"]))
def test_no_image_leads_outside_the_intervals(seed, activation):
    graph = mobile_network(seed, activation)
    graph.input_mean, graph.input_std = (128.0, 90.0, 10.0), (60.0, -50.0, 70.0)
    reach = channel_intervals(graph)
    free = replace(graph, ops=[replace(op, activation="none") for op in graph.ops])
    for position, op in enumerate(graph.ops):
        # The op's output before its activation; the ops before it have theirs.
        ops = [*graph.ops[:position], free.ops[position]]
        part = replace(graph, ops=ops, tensors=graph.tensors[: position + 2], output=op.output)
        values = float_activations(part, normalize(part, random_images(seed, 4, graph)))[op.output]
        slack = 1e-4 * (1 + np.abs(values).max())
        assert np.all(values >= reach[op.output].low - slack), op.name
        assert np.all(values <= reach[op.output].high + slack), op.name


def test_images_that_do_not_fit_are_refused():
    graph = mobile_network(0)
    with pytest.raises(ValueError, match="the calibration set has 1 image, but must have at least"):
        equalize(graph, random_images(0, 1, graph))
    graph.ops[0].weights[0, 0, 0, 0] = np.nan
    with pytest.raises(ValueError, match=r"op 'stem' .* weights hold a value that is not finite"):
        equalize(graph, random_images(0, 8, graph))
