"""int8 ONNX networks in QDQ form: ours, and those of ONNX Runtime's quantizer."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from networks import every_op, pixels, residual_network
from onnx_networks import Network, onnx, quantized_statically, run

import pmt
from pmt import formats
from pmt.formats.onnx import importer as onnx_qdq
from pmt.formats.onnx.exporter import onnx_model
from pmt.net.graph import Graph


@pytest.mark.parametrize("unsigned", [False, True])
def test_a_dense_layer_is_read_as_a_convolution_and_a_pad_joins_its_reader(unsigned, tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(onnx_model(every_op().to_graph(), unsigned=unsigned))
    kinds = [op.kind for op in formats.read(path).ops]
    assert kinds == ["conv2d", "max_pool", "average_pool", "reshape", "conv2d"]


def float_network(net: Network) -> str:
    """Convolutions of three kinds, a residual, pools, a MatMul: as an exporter leaves them."""
    x = net.add("Relu", [net.conv("x", 3, 8, pads=[1, 1, 1, 1])])
    y = net.add(
        "Clip", [net.conv(x, 8, 8, group=8, pads=[1, 1, 1, 1]), *map(net.constant, (0.0, 6.0))]
    )
    x = net.add("Relu", [net.add("Add", [net.conv(y, 8, 8, 1), x])])
    x = net.add("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 0, 0])
    x = net.conv(x, 8, 12, dilations=[2, 2])
    x = net.add("Reshape", [x, net.constant([0, -1], np.int64)])
    x = net.add("Relu", [net.add("Gemm", [x, net.weights(192, 9), net.weights(9)])])
    return net.add("Add", [net.add("MatMul", [x, net.weights(9, 5)]), net.weights(5)])


def branches(net: Network) -> str:
    """Three branches of other ranges, joined by their channels: as in Inception and SqueezeNet."""
    x = net.add("Relu", [net.conv("x", 3, 8, pads=[1, 1, 1, 1])])
    wide = net.add("Relu", [net.conv(x, 8, 5, pads=[1, 1, 1, 1])])
    pooled = net.add("MaxPool", [x], kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1])
    x = net.add("Concat", [wide, net.conv(x, 8, 4, 1), pooled], axis=1)
    x = net.add("Reshape", [net.conv(x, 17, 6, strides=[4, 4]), net.constant([0, -1], np.int64)])
    return net.add("Gemm", [x, net.weights(96, 5), net.weights(5)])


def average(net: Network) -> str:
    x = net.conv("x", 3, 8)
    return net.add("AveragePool", [x], kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 1, 1])


def mean(net: Network) -> str:
    return net.add("GlobalAveragePool", [net.conv("x", 3, 8)])


def quantized(
    folder: Path, seed: int, activations: str, build: Callable[[Network], str], **options
) -> tuple[Path, np.ndarray]:
    """A network that ONNX Runtime quantized on 8 random batches, and other inputs."""
    rng = np.random.default_rng(seed)
    batches = [rng.normal(size=(4, 3, 16, 16)).astype(np.float32) for _ in range(8)]
    net = Network(seed)
    source = net.save(folder / "float.onnx", build(net), ("n", 3, 16, 16))
    path = quantized_statically(source, batches, activations, **options)
    return path, rng.normal(size=(100, 3, 16, 16)).astype(np.float32)


def int8_of(graph: Graph, index: int, real: np.ndarray) -> np.ndarray:
    tensor = graph.tensors[index]
    steps = np.rint(real / np.float32(tensor.scale)) + tensor.zero_point
    return np.clip(steps, -128, 127).astype(np.int8)


def our_outputs(graph: Graph, inputs: np.ndarray) -> np.ndarray:
    """Our int8 outputs for the real inputs (N, 3, H, W) of a file."""
    model = pmt.Model.from_graph(graph)
    ready = int8_of(graph, graph.input, inputs).transpose(0, 2, 3, 1)
    rows = [model.core.activations(np.ascontiguousarray(image))[graph.output] for image in ready]
    return np.stack(rows).reshape(len(inputs), -1)


@pytest.mark.parametrize(
    ("activations", "options"),
    [
        ("QInt8", {"per_channel": True}),
        ("QUInt8", {"per_channel": True}),
        ("QUInt8", {"per_channel": False}),
        ("QInt8", {"per_channel": True, "extra_options": {"ActivationSymmetric": True}}),
    ],
)
def test_networks_of_onnx_runtimes_quantizer(activations, options, tmp_path):
    for seed, build in [*enumerate([float_network] * 2), (2, branches)]:
        path, inputs = quantized(tmp_path, seed, activations, build, **options)
        graph = onnx_qdq.read(path, input_mean=0.0, input_std=1.0)
        found = our_outputs(graph, inputs).astype(int)
        expected = int8_of(graph, graph.output, run(path, inputs)).astype(int)
        differences = np.abs(found - expected)
        assert differences.max() <= 1
        assert np.mean(differences == 0) >= 0.98
        assert np.mean(found.argmax(1) == expected.argmax(1)) >= 0.98


@pytest.mark.parametrize(("build", "kind"), [(average, "average_pool"), (mean, "mean")])
def test_averages_differ_by_one_step_at_most(build, kind, tmp_path):
    # QuantizeLinear rounds their ties the other way where the zero point is odd.
    for seed in range(2):
        path, inputs = quantized(tmp_path, seed, "QInt8", build, per_channel=True)
        graph = onnx_qdq.read(path, input_mean=0.0, input_std=1.0)
        assert [op.kind for op in graph.ops] == ["conv2d", kind]
        real = run(path, inputs).transpose(0, 2, 3, 1).reshape(100, -1)
        differences = our_outputs(graph, inputs).astype(int) - int8_of(graph, graph.output, real)
        assert np.abs(differences).max() <= 1


def test_integer_kernels_of_onnx_runtime(tmp_path):
    # Weights of 7 bits: its kernels for 8 bits saturate on processors without VNNI.
    path, inputs = quantized(
        tmp_path, 0, "QUInt8", float_network, per_channel=True, reduce_range=True
    )
    graph = onnx_qdq.read(path, input_mean=0.0, input_std=1.0)
    found = our_outputs(graph, inputs).astype(int)
    expected = int8_of(graph, graph.output, run(path, inputs, optimized=True)).astype(int)
    assert np.abs(found - expected).max() <= 2
    assert np.mean(found.argmax(1) == expected.argmax(1)) >= 0.95


def convolution(net: Network) -> str:
    """A float convolution of quantized values: 3 channels become 4."""
    values = net.constant(net.rng.integers(-99, 99, (4, 3, 2, 2)).astype(np.int8))
    weights = net.add("DequantizeLinear", [values, net.constant(0.0123)])
    return net.add("Conv", [net.quantized("x", 0.05, -3), weights])


def after_pool(net: Network, x: str) -> str:
    return net.quantized(net.add("MaxPool", [x], kernel_shape=[2, 2]), 0.08, 5)


@pytest.mark.parametrize("build", [after_pool, lambda net, x: x])
def test_bounds_between_two_scales_are_rounded_to_the_later_one(build, tmp_path):
    net = Network()
    x = build(net, net.quantized(convolution(net), 0.08, 5))
    clipped = net.add("Clip", [x, net.constant(-0.5), net.constant(0.9)])
    path = net.save(tmp_path / "net.onnx", net.quantized(clipped, 0.008, 0), ("n", 3, 6, 6))
    graph = onnx_qdq.read(path, input_mean=0.0, input_std=1.0)
    inputs = np.random.default_rng(0).normal(size=(20, 3, 6, 6)).astype(np.float32)
    real = run(path, inputs).transpose(0, 2, 3, 1).reshape(20, -1)
    differences = our_outputs(graph, inputs).astype(int) - int8_of(graph, graph.output, real)
    assert np.abs(differences).max() <= 1


@pytest.mark.parametrize(("kind", "bound", "zero"), [("Max", 0.09, 127), ("Min", -0.09, -128)])
def test_a_bound_beyond_all_values_is_that_of_the_later_scale(kind, bound, zero, tmp_path):
    net = Network()
    x = net.quantized(convolution(net), 0.08, zero)
    limited = net.add(kind, [x, net.constant(bound)])
    path = net.save(tmp_path / "net.onnx", net.quantized(limited, 0.001, 0), ("n", 3, 6, 6))
    graph = onnx_qdq.read(path, input_mean=0.0, input_std=1.0)
    inputs = np.random.default_rng(0).normal(size=(20, 3, 6, 6)).astype(np.float32)
    assert set(our_outputs(graph, inputs).ravel()) == {round(bound * 1000)}
    assert np.allclose(run(path, inputs), bound)


def test_bounds_that_leave_one_step_are_told_with_their_node(tmp_path):
    net = Network()
    x = net.quantized(convolution(net), 0.08, -128)
    limited = net.add("Min", [x, net.constant(0.0)])
    path = net.save(tmp_path / "net.onnx", net.quantized(limited, 0.08, -128), ("n", 3, 6, 6))
    message = (
        r"node 'n6' \(Min\) is clipped to \[-inf, 0\], where its scale 0\.08 has one step only"
    )
    with pytest.raises(ValueError, match=message):
        onnx_qdq.read(path)


@pytest.mark.parametrize("scale", [0.08, 0.041, 0.039])
def test_a_padded_average_is_rounded_twice_at_most_to_the_next_step(scale, tmp_path):
    net = Network()
    x = net.quantized(convolution(net), 0.08, 5)
    x = net.add("AveragePool", [x], kernel_shape=[2, 2], pads=[1, 1, 0, 0])
    path = net.save(tmp_path / "net.onnx", net.quantized(x, scale, 5), ("n", 3, 6, 6))
    if scale < 0.04:
        message = r"averages a padded map of scale 0\.08 and has the scale 0\.039: at most 2 times"
        with pytest.raises(ValueError, match=message):
            onnx_qdq.read(path)
        return
    graph = onnx_qdq.read(path, input_mean=0.0, input_std=1.0)
    inputs = np.random.default_rng(0).normal(size=(20, 3, 6, 6)).astype(np.float32)
    real = run(path, inputs).transpose(0, 2, 3, 1).reshape(20, -1)
    differences = our_outputs(graph, inputs).astype(int) - int8_of(graph, graph.output, real)
    assert np.abs(differences).max() <= 1


def weights_between(net: Network, dtype: type, zero: int) -> str:
    """One convolution between quantize and dequantize nodes, weights with a zero point."""
    x = net.quantized("x", 0.05, -3)
    values = net.constant(np.arange(24).reshape(2, 3, 2, 2) + 120, dtype)
    weights = net.add("DequantizeLinear", [values, net.constant(0.02), net.constant(zero, dtype)])
    return net.add("GlobalMaxPool", [net.quantized(net.add("Conv", [x, weights]), 0.1, -3)])


@pytest.mark.parametrize("zero", [128, 130, 64])
def test_unsigned_weights_are_read_around_their_zero_point(tmp_path, zero):
    net = Network()
    path = net.save(tmp_path / "net.onnx", weights_between(net, np.uint8, zero), (1, 3, 6, 6))
    graph = onnx_qdq.read(path, input_mean=0.0, input_std=1.0)
    # Out, row, column: 120, 124, 128.
    assert graph.ops[0].weights[0, 0, 0].tolist() == [120 - zero, 124 - zero, 128 - zero]
    inputs = np.random.default_rng(0).normal(size=(20, 3, 6, 6)).astype(np.float32)
    expected = int8_of(graph, graph.output, run(path, inputs)).reshape(20, -1)
    np.testing.assert_array_equal(our_outputs(graph, inputs), expected)


def test_weights_too_far_from_their_zero_point_are_refused(tmp_path):
    net = Network()
    path = net.save(tmp_path / "net.onnx", weights_between(net, np.uint8, 10), (1, 3, 6, 6))
    message = r"\(Conv\): its weights have zero points .* -118, and are up to 133 steps from them"
    with pytest.raises(ValueError, match=message):
        onnx_qdq.read(path)


def test_a_float_network_is_sent_to_the_quantizer(tmp_path):
    net = Network()
    path = net.save(tmp_path / "net.onnx", float_network(net), ("n", 3, 16, 16))
    command = r"`pmt quantize \S+net\.onnx --calibrate DIR --out net\.pmt`"
    with pytest.raises(ValueError, match=f"is a float network.*{command}"):
        formats.read(path)


def test_activations_without_scales_are_named(tmp_path):
    net = Network()
    x = net.quantized("x", 0.05, 3)
    stored = net.constant(np.ones((4, 3, 1, 1)), np.int8)
    weights = net.add("DequantizeLinear", [stored, net.constant(0.05)])
    first = net.add("Conv", [x, weights])
    second = net.add("Conv", [first, net.weights(4, 4, 1, 1)])
    path = net.save(tmp_path / "net.onnx", net.add("GlobalAveragePool", [second]))
    with pytest.raises(ValueError, match="n4' \\(Conv\\): its weights are float in a quantized"):
        onnx_qdq.read(path)
    net.nodes.pop()
    net.nodes.pop()
    path = net.save(tmp_path / "net.onnx", net.add("GlobalAveragePool", [first]))
    with pytest.raises(ValueError, match=r"it reads node 'n3' \(Conv\) in float, without Q"):
        onnx_qdq.read(path)
    net.nodes.pop()
    path = net.save(tmp_path / "net.onnx", first)
    with pytest.raises(ValueError, match=r"no QuantizeLinear follows node 'n3' \(Conv\): every"):
        onnx_qdq.read(path)


def test_float_weights_behind_quantize_nodes(tmp_path):
    """As exporters write quantization-aware training: weights and biases float in the file."""
    net = Network()
    x = net.quantized("x", 0.03, -5)
    scales = [0.01, 0.02, 0.01, 0.03]
    weights = net.quantized(net.weights(4, 3, 3, 3), scales, [0] * 4, axis=0)
    x = net.add("Relu", [net.add("Conv", [x, weights, net.weights(4)], pads=[1, 1, 1, 1])])
    x = net.quantized(net.add("Flatten", [net.quantized(x, 0.04, -5)]), 0.04, -5)
    weights = net.quantized(net.weights(144, 4, scale=0.1), [0.01] * 4, [0] * 4, axis=1)
    x = net.add("Add", [net.add("MatMul", [x, weights]), net.weights(4)])
    path = net.save(tmp_path / "net.onnx", net.quantized(x, 0.1, -5), ("n", 3, 6, 6))
    graph = onnx_qdq.read(path, input_mean=0.0, input_std=1.0)
    assert [op.kind for op in graph.ops] == ["conv2d", "fully_connected"]
    assert graph.ops[0].clamp == (-5, 127)
    inputs = np.random.default_rng(0).normal(size=(50, 3, 6, 6)).astype(np.float32)
    expected = int8_of(graph, graph.output, run(path, inputs)).astype(int)
    differences = np.abs(our_outputs(graph, inputs) - expected)
    assert differences.max() <= 1
    assert np.mean(differences == 0) >= 0.99


INT8 = onnx.TensorProto.INT8


@pytest.mark.parametrize(
    ("opset", "of_quantize", "of_dequantize", "dtype"),
    [(17, True, False, None), (21, False, False, INT8), (21, False, True, INT8)],
)
def test_zero_points_that_are_left_out(opset, of_quantize, of_dequantize, dtype, tmp_path):
    """DequantizeLinear reads the type that QuantizeLinear writes."""
    net = Network(opset=opset)
    scale, zero = net.constant(np.float32(0.05)), net.constant(np.int8(0))
    x = net.quantized("x", 1 / 255, -128)
    weights = net.constant(net.rng.integers(-9, 9, (4, 3, 3, 3)).astype(np.int8))
    w = net.add("DequantizeLinear", [weights, net.constant(np.float32(0.01))])
    kind = {} if dtype is None else {"output_dtype": dtype}
    y = net.add("Conv", [x, w])
    y = net.add("QuantizeLinear", [y, scale, *[zero] * of_quantize], **kind)
    y = net.add("DequantizeLinear", [y, scale, *[zero] * of_dequantize])
    path = net.save(tmp_path / "net.onnx", y, (1, 3, 6, 6))
    graph = onnx_qdq.read(path, input_mean=0.0, input_std=255.0)
    assert graph.tensors[graph.output].zero_point == 0
    real = np.random.default_rng(0).uniform(0, 1, (5, 3, 6, 6)).astype(np.float32)
    expected = np.rint(run(path, real) / 0.05).transpose(0, 2, 3, 1).reshape(5, -1)
    assert np.abs(our_outputs(graph, real) - expected).max() <= 1


@pytest.mark.parametrize(
    ("network", "op"), [*((every_op, op) for op in range(6)), (residual_network, 6)]
)
def test_clamps_are_read_back(network, op, tmp_path):
    """A fused activation of a .tflite stands on any op, a mean or a pool too."""
    graph = network().to_graph()
    clamped = graph.ops[op]
    zero = graph.tensors[clamped.output].zero_point
    low, high = max(-128, zero - 9), min(127, zero + 20)
    graph.ops[op] = replace(clamped, clamp=(low, high))
    model = pmt.Model.from_graph(graph)
    model.save(tmp_path / "net.onnx")
    inputs = model.prepare(pixels(model, 30))
    read = pmt.load(tmp_path / "net.onnx")
    np.testing.assert_array_equal(read.core.logits(inputs), model.core.logits(inputs))


def test_nodes_stay_in_the_order_of_the_file(tmp_path):
    """The short branch is written before the long one and is read so."""

    def branches(net: Network) -> str:
        x = net.add("Relu", [net.conv("x", 3, 8, pads=[1, 1, 1, 1])])
        short = net.conv(x, 8, 8, 1)
        long = net.conv(net.add("Relu", [net.conv(x, 8, 6, pads=[1, 1, 1, 1])]), 6, 8, 1)
        total = net.add("Add", [short, long])
        return net.head(net.add("GlobalAveragePool", [total]), 8)

    path, _ = quantized(tmp_path, 0, "QInt8", branches)
    layers = pmt.Model.from_graph(formats.read(path)).layers
    assert [layer.weights for layer in layers] == [216, 64, 432, 48, 32]


def coarse_bias(
    net: Network, values: np.ndarray, scale: float, out_scale: float, groups: int = 1
) -> str:
    """A convolution of coarse weights between fine values, its bias float."""
    weights = net.add("DequantizeLinear", [net.constant(values, np.int8), net.constant(scale)])
    inputs = [net.quantized("x", 1.0, 0), weights, net.constant([0.34, -0.21, 0.5])]
    x = net.add("Conv", inputs, group=groups)
    return net.add("GlobalMaxPool", [net.quantized(x, out_scale, 0)])


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("largest", [0, 6])
def test_a_float_bias_is_finer_than_small_weights(largest, groups, tmp_path):
    # Pruned channels are of scale 1 in files of quantize_static.
    net = Network()
    values = net.rng.integers(-largest, largest + 1, (3, 3 // groups, 2, 2))
    output = coarse_bias(net, values, 0.1, 0.02, groups)
    path = net.save(tmp_path / "net.onnx", output, (1, 3, 4, 4))
    graph = onnx_qdq.read(path, input_mean=0.0, input_std=1.0)
    inputs = np.random.default_rng(0).integers(-1, 2, (40, 3, 4, 4)).astype(np.float32)
    expected = int8_of(graph, graph.output, run(path, inputs)).reshape(40, -1).astype(int)
    assert np.abs(our_outputs(graph, inputs) - expected).max() <= 1
    if not largest:
        assert expected[0].tolist() == [17, -10, 25]
        np.testing.assert_array_equal(our_outputs(graph, inputs), expected)


def test_a_float_bias_that_no_layer_can_hold_is_refused(tmp_path):
    net = Network()
    values = net.rng.integers(-99, 100, (3, 3, 2, 2))
    path = net.save(tmp_path / "net.onnx", coarse_bias(net, values, 0.1, 0.02), (1, 3, 4, 4))
    message = r"net\.onnx: node 'n3' \(Conv\) has a float bias, .* would be 2 steps off, at most 1 "
    with pytest.raises(ValueError, match=message):
        onnx_qdq.read(path, input_mean=0.0, input_std=1.0)
