"""Bias correction: the mean of what int8 adds is taken off."""

import numpy as np
import pytest
from float_networks import mobile_network, random_images

from pmt import formats
from pmt.quantization import (
    correct_biases,
    dequantize,
    float_activations,
    integer_activations,
    normalize,
    post_training,
    quantize,
    signal_to_noise,
    worst,
)
from pmt.quantization.post_training import run_op


def shifted(seed: int = 0):
    """A float network, its int8 one with biases that are off, and images."""
    graph = mobile_network(seed)
    images = random_images(seed, 64, graph)
    quantized = quantize(graph, images)
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

    plain = quantize(graph, images)
    expected = correct_biases(graph, plain, images)
    found = quantize(graph, images, bias_correction=True)
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
    quantized = quantize(graph, images)
    corrected = correct_biases(graph, quantized, images)
    before, after = (
        signal_to_noise(graph, found, images[:4])[-1].signal_to_noise
        for found in (quantized, corrected)
    )
    assert after > before + 4
