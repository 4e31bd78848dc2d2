"""The float network of an int8 network, and back."""

import numpy as np
import pytest
from networks import pixels, residual_network, smooth_network

import pmt
from pmt import formats
from pmt.net.graph import Graph
from pmt.quantization import (
    dequantize,
    float_logits,
    quantize_with_ranges,
    signal_to_noise,
    tensor_ranges,
)


def agree(graph: Graph, images: np.ndarray) -> np.ndarray:
    """Whether the greatest logit is the same in int8 and in float, image by image."""
    int8 = pmt.Model.from_graph(graph).logits(images)
    return int8.argmax(axis=1) == float_logits(dequantize(graph), images).argmax(axis=1)


def test_weights_biases_and_activations_are_the_real_ones():
    model = pmt.load("fashion_mnist_dscnn")
    graph = model.to_graph()
    floating = dequantize(graph)
    conv, source = graph.ops[0], graph.tensors[graph.ops[0].inputs[0]]
    found = floating.ops[0]
    assert found.weights.dtype == found.bias.dtype == np.float32
    assert found.weights[3, 1, 2, 0] == np.float32(
        conv.weights[3, 1, 2, 0] * float(conv.weight_scales[3])
    )
    assert found.bias[5] == np.float32(conv.bias[5] * (source.scale * float(conv.weight_scales[5])))
    depthwise = floating.ops[1]
    assert depthwise.weights[2, 0, 7] == np.float32(
        graph.ops[1].weights[2, 0, 7] * float(graph.ops[1].weight_scales[7])
    )
    assert [op.activation for op in floating.ops[:5]] == ["relu6"] * 4 + ["none"]
    assert floating.blocks == graph.blocks
    assert (floating.input_mean, floating.input_std) == (graph.input_mean, graph.input_std)


def test_relu_ends_above_six_and_relu6_at_or_below_it():
    graph = residual_network().to_graph()
    kinds = {op.name: op.activation for op in dequantize(graph).ops}
    # 0.02 * 255 = 5.1 and 0.03 * 255 = 7.65.
    assert kinds["stem"] == kinds["expand"] == "relu6"
    assert kinds["down"] == "relu"
    assert kinds["project"] == kinds["head"] == "none"
    graph.ops[0].clamp = (-128, 20)
    assert dequantize(graph).ops[0].activation == "relu6"


def test_the_float_network_classifies_as_the_int8_one():
    graph = smooth_network().to_graph()
    images = pixels(pmt.Model.from_graph(graph), 200)
    report = signal_to_noise(dequantize(graph), graph, images)
    # The int8 logits are coarse here; what is compared below are the accumulators.
    assert report[0].signal_to_noise > 25
    assert agree(graph, images).mean() >= 0.98


def test_quantized_again_with_its_ranges_the_bundled_model_is_the_same():
    graph = pmt.load("fashion_mnist_dscnn").to_graph()
    again = quantize_with_ranges(dequantize(graph), tensor_ranges(graph))
    for old, new in zip(graph.tensors, again.tensors, strict=True):
        assert (new.scale, new.zero_point) == (pytest.approx(old.scale, rel=1e-6), old.zero_point)
    for old, new in zip(graph.ops, again.ops, strict=True):
        assert new.clamp == old.clamp
        if old.weights is not None:
            assert np.array_equal(new.weights, old.weights)
            assert new.weight_scales == pytest.approx(old.weight_scales, rel=1e-6)
            assert np.abs(new.bias - old.bias).max() <= 1


def test_real_weights_with_dead_channels_come_back(mcunet_path):
    graph = formats.read(mcunet_path)
    floating = dequantize(graph)
    assert {op.activation for op in floating.ops if op.name.endswith(".depthwise")} == {"relu6"}
    assert {op.activation for op in floating.ops if op.name.endswith(".pointwise2")} == {"none"}
    again = quantize_with_ranges(floating, tensor_ranges(graph))
    same = channels = 0
    for old, new in zip(graph.ops, again.ops, strict=True):
        if old.weights is None:
            continue
        axis = 2 if old.kind == "depthwise_conv2d" else 0
        a, b = (np.moveaxis(op.weights, axis, 0).reshape(op.bias.size, -1) for op in (old, new))
        full = (np.abs(a.astype(int)).max(axis=1) == 127) & (np.abs(old.bias.astype(float)) < 2**23)
        assert np.array_equal(a[full], b[full]), old.name
        assert new.weight_scales[full] == pytest.approx(old.weight_scales[full], rel=1e-6)
        same, channels = same + full.sum(), channels + len(a)
    # The others hold no weight of full size: dead channels, most of them.
    assert (same, channels) == (6945, 7008)


def test_layers_without_parameters_are_refused():
    graph = smooth_network().to_graph()
    graph.ops[0].bias = None
    with pytest.raises(ValueError, match="op 'conv': weights, weight_scales or bias are missing"):
        dequantize(graph)


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ([(0.0, 1.0)], "there are 1 ranges for the 3 tensors"),
        ([(0.0, 1.0), (0.5, 1.0), (0.0, 1.0)], r"range of 'nodes' is \(0.5, 1.0\), but must"),
        ([(0.0, 1.0), (0.0, np.inf), (0.0, 1.0)], "must be finite and hold zero"),
        ([(0.0, 1.0), (0.0, np.nan), (0.0, 1.0)], "must be finite and hold zero"),
    ],
)
def test_ranges_that_do_not_fit_are_refused(ranges, message):
    with pytest.raises(ValueError, match=message):
        quantize_with_ranges(dequantize(smooth_network().to_graph()), ranges)
