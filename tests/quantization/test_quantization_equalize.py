"""Cross-layer equalization and bias correction: the function stays, the noise falls."""

from dataclasses import replace

import numpy as np
import pytest
from float_networks import graph_of, mobile_network, random_images
from hypothesis import given, settings
from hypothesis import strategies as st

from pmt import formats
from pmt.quantization import (
    FloatOp,
    correct_biases,
    dequantize,
    equalize,
    float_activations,
    float_logits,
    integer_activations,
    normalize,
    post_training,
    quantize_graph,
    signal_to_noise,
    worst,
)
from pmt.quantization.equalization import channel_intervals, scalable_pairs
from pmt.quantization.post_training import run_op


def names(graph) -> list[tuple[str, str]]:
    return [(graph.ops[p.first].name, graph.ops[p.second].name) for p in scalable_pairs(graph)]


def output_noise(graph, images, **options) -> float:
    result = quantize_graph(graph, images, **options)
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


def shifted(seed: int = 0):
    """A float network, its int8 one with biases that are off, and images."""
    graph = mobile_network(seed)
    images = random_images(seed, 64, graph)
    quantized = quantize_graph(graph, images)
    r = np.random.default_rng(seed)
    for op in quantized.ops:
        if op.bias is not None:
            op.bias = (op.bias + r.integers(-4000, 4001, op.bias.shape)).astype(np.int32)
    return graph, quantized, images


def mean_errors(graph, quantized, images, name: str) -> np.ndarray:
    """Mean of int8 minus float per channel, in steps of the output."""
    (op,) = (op for op in quantized.ops if op.name == name)
    tensor = quantized.tensors[op.output]
    exact = float_activations(graph, normalize(graph, images))[op.output]
    found = integer_activations(quantized, images)[op.output].astype(float) - tensor.zero_point
    return (found - exact / tensor.scale).mean(axis=(0, 1, 2))


def test_one_op_at_a_time_gives_what_the_network_gives():
    _, quantized, images = shifted()
    whole = integer_activations(quantized, images[:5])
    for op in quantized.ops:
        found = run_op(quantized, op, [whole[index] for index in op.inputs])
        assert found.dtype == np.int8
        assert np.array_equal(found, whole[op.output]), op.name


def test_the_mean_of_every_channel_becomes_that_of_the_float_network():
    graph, quantized, images = shifted()
    biases = [None if op.bias is None else op.bias.copy() for op in quantized.ops]
    corrected = correct_biases(graph, quantized, images)
    # Layers without an activation: what is compared is not clipped.
    for name in ("stem", "project", "head"):
        assert np.abs(mean_errors(graph, quantized, images, name)).max() > 0.5, name
        assert np.abs(mean_errors(graph, corrected, images, name)).max() < 0.12, name
    for op, bias in zip(quantized.ops, biases, strict=True):
        assert (op.bias is None) == (bias is None)
        assert bias is None or np.array_equal(op.bias, bias)  # the argument is as it was


def test_correction_lowers_the_noise_and_is_an_option_of_quantize():
    graph, quantized, images = shifted(1)
    before = signal_to_noise(graph, quantized, images)
    after = signal_to_noise(graph, correct_biases(graph, quantized, images), images)
    assert after[-1].signal_to_noise > before[-1].signal_to_noise + 6
    assert worst(before).signal_to_noise == min(op.signal_to_noise for op in before)

    plain = quantize_graph(graph, images)
    expected = correct_biases(graph, plain, images)
    found = quantize_graph(graph, images, bias_correction=True)
    for one, other in zip(expected.ops, found.ops, strict=True):
        assert one.bias is None or np.array_equal(one.bias, other.bias)


def test_evenly_chosen_images_are_used_where_all_would_not_fit(monkeypatch):
    graph, quantized, images = shifted()
    few = correct_biases(graph, quantized, images[[0, 21, 42, 63]])
    monkeypatch.setattr(post_training, "_IMAGE_BYTES", 4 * post_training.live_elements(graph))
    found = correct_biases(graph, quantized, images)
    for one, other in zip(few.ops, found.ops, strict=True):
        assert one.bias is None or np.array_equal(one.bias, other.bias)


def test_progress_counts_images_and_then_ops():
    graph, quantized, images = shifted()
    seen = []
    correct_biases(graph, quantized, images, progress=lambda *step: seen.append(step))
    assert seen == [(64, 64), *((op, 11) for op in range(1, 12))]


def test_graphs_of_different_networks_are_refused():
    graph, quantized, images = shifted()
    graph.ops[2].name = "other"
    with pytest.raises(ValueError, match="11 ops that are not the 11 of float_graph"):
        correct_biases(graph, quantized, images)


def test_on_a_real_network_the_logits_gain_several_decibel(mcunet_path, shared):
    graph = dequantize(formats.read(mcunet_path))
    r = np.random.default_rng(0)
    for op in graph.ops:
        if op.weights is not None:
            # Off the int8 grid that the weights come from, as any float network is.
            axis = op.weights.ndim - 1 if op.kind == "depthwise_conv2d" else 0
            peaks = np.abs(op.weights).max(
                axis=tuple(i for i in range(op.weights.ndim) if i != axis), keepdims=True
            )
            noise = r.uniform(-0.5, 0.5, op.weights.shape) * peaks / 127
            op.weights = (op.weights + noise).astype(np.float32)
    coarse = r.uniform(0, 255, (16, 9, 9, 3))
    images = coarse.repeat(15, axis=1).repeat(15, axis=2)[:, :128, :128].astype(np.uint8)
    quantized = quantize_graph(graph, images)
    corrected = correct_biases(graph, quantized, images)
    before, after = (
        signal_to_noise(graph, found, images[:4])[-1].signal_to_noise
        for found in (quantized, corrected)
    )
    assert after > before + 4
