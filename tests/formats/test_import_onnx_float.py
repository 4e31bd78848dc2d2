"""Float ONNX networks: what we compute of them against ONNX Runtime."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx_networks import Network, run

from pmt.formats.onnx import float_importer as onnx_float
from pmt.model import Model
from pmt.quantization import FloatGraph, float_activations, quantize_graph

Builder = Callable[[Network], str]


def ours(graph: FloatGraph, inputs: np.ndarray) -> np.ndarray:
    """Our output for the file's NCHW inputs, which the network may normalize first."""
    # The reader takes pixel / 1 as the file's input, so mean and spread are the network's own.
    nhwc = np.ascontiguousarray(inputs.transpose(0, 2, 3, 1))
    first = (nhwc - np.float32(graph.input_mean)) / np.float32(graph.input_std)
    return float_activations(graph, first.astype(np.float32))[graph.output].reshape(len(inputs), -1)


def check(path: Path, shape: tuple[int, ...] = (3, 3, 8, 8)) -> FloatGraph:
    graph = onnx_float.read(path, input_mean=0.0, input_std=1.0)
    inputs = np.random.default_rng(5).normal(size=shape).astype(np.float32)
    expected = run(path, inputs).reshape(len(inputs), -1)
    np.testing.assert_allclose(ours(graph, inputs), expected, atol=1e-4, rtol=1e-4)
    return graph


def kinds(graph: FloatGraph) -> list[str]:
    return [op.kind for op in graph.ops]


def conv_of(**attributes) -> Builder:
    def build(net: Network) -> str:
        return net.add("GlobalAveragePool", [net.conv("x", 3, 5, **attributes)])

    return build


def pool_of(kind: str, **attributes) -> Builder:
    def build(net: Network) -> str:
        pooled = net.add(kind, [net.conv("x", 3, 4, 1)], **attributes)
        return net.add("GlobalAveragePool", [net.add("Relu", [pooled])])

    return build


def residual(net: Network) -> str:
    first = net.add("Relu", [net.batch_norm(net.conv("x", 3, 6, pads=[1, 1, 1, 1]), 6)])
    second = net.batch_norm(net.conv(first, 6, 6, pads=[1, 1, 1, 1]), 6)
    total = net.add("Relu", [net.add("Add", [second, first])])
    return net.head(net.add("GlobalAveragePool", [total]), 6)


def dense_block(net: Network) -> str:
    first = net.add("Relu", [net.conv("x", 3, 6, pads=[1, 1, 1, 1])])
    second = net.conv(first, 6, 4, pads=[1, 1, 1, 1])
    joined = net.add("Relu", [net.add("Concat", [first, second, first], axis=1)])
    normed = net.add("Relu", [net.batch_norm(joined, 16)])
    last = net.add("Concat", [net.conv(normed, 16, 3, 1), joined], axis=-3)
    pooled = net.add("Flatten", [net.add("GlobalAveragePool", [last])])
    return net.head(net.add("Concat", [pooled, pooled], axis=-1), 38)


def pre_activation(net: Network) -> str:
    first = net.conv("x", 3, 6)
    normed = net.add("Relu", [net.batch_norm(first, 6)])
    second = net.conv(normed, 6, 6, pads=[1, 1, 1, 1])
    return net.head(net.batch_norm(net.add("Add", [first, second]), 6), 6 * 36)


def norm_before_conv(net: Network) -> str:
    pooled = net.add("MaxPool", [net.conv("x", 3, 6)], kernel_shape=[2, 2], strides=[2, 2])
    return net.add("GlobalAveragePool", [net.conv(net.batch_norm(pooled, 6), 6, 4)])


def normalized_input(net: Network) -> str:
    mean, std = net.constant([[[0.4]], [[0.5]], [[0.6]]]), net.constant([[[0.2]], [[0.3]], [[0.1]]])
    x = net.add("Div", [net.add("Sub", ["x", mean]), std])
    return net.head(net.conv(x, 3, 4, pads=[1, 1, 1, 1]), 4 * 64)


def reversed_subtraction(net: Network) -> str:
    x = net.add("Mul", [net.add("Sub", [net.constant(1.0), "x"]), net.constant(2.0)])
    return net.head(net.conv(x, 3, 4, pads=[1, 1, 1, 1]), 4 * 64)


def constants_around(net: Network) -> str:
    x = net.add("Mul", [net.conv("x", 3, 4), net.weights(1, 4, 1, 1)])
    x = net.add("Add", [net.weights(4, 1, 1), x])
    x = net.add("Div", [x, net.constant(-2.0)])
    return net.head(x, 4 * 36)


def dense_layers(net: Network) -> str:
    x = net.add("MaxPool", [net.conv("x", 3, 5)], kernel_shape=[2, 2], strides=[2, 2])
    x = net.add("Reshape", [x, net.constant([0, -1], np.int64)])
    x = net.add(
        "Relu", [net.add("Add", [net.add("MatMul", [x, net.weights(45, 7)]), net.weights(7)])]
    )
    inputs = [x, net.weights(7, 4), net.weights(1, 4)]
    return net.add("Softmax", [net.add("Gemm", inputs, alpha=0.5, beta=2.0)], axis=-1)


def padded(net: Network) -> str:
    pads = net.constant([0, 0, 0, 1, 0, 0, 1, 2], np.int64)
    x = net.add("Relu", [net.conv(net.add("Pad", ["x", pads]), 3, 4, strides=[2, 2])])
    pooled = net.add("MaxPool", [net.add("Pad", [x, pads])], kernel_shape=[3, 3])
    x = net.add("AveragePool", [net.add("Pad", [pooled, pads])], kernel_shape=[2, 2])
    return net.add("GlobalAveragePool", [x])


def clipped_after_pool(net: Network) -> str:
    pooled = net.add("AveragePool", [net.conv("x", 3, 4)], kernel_shape=[2, 2], strides=[2, 2])
    x = net.add("Clip", [pooled, net.constant(-0.3), net.constant(0.4)])
    return net.head(net.add("Relu", [x]), 36)


def two_readers(net: Network) -> str:
    x = net.conv("x", 3, 4)
    return net.head(net.add("Add", [net.add("Relu", [x]), net.batch_norm(x, 4)]), 4 * 36)


def row_then_column_mean(net: Network) -> str:
    x = net.add("ReduceMean", [net.conv("x", 3, 4)], axes=[3], keepdims=0)
    return net.add("ReduceMean", [x], axes=[-1], keepdims=0)


def bounds_by_min_and_max(net: Network) -> str:
    x = net.add("Max", [net.conv("x", 3, 4), net.constant(0.0)])
    return net.head(net.add("Min", [x, net.constant(6.0)]), 4 * 36)


def shape_arithmetic(net: Network) -> str:
    x = net.conv("x", 3, 4)
    batch = net.add("Gather", [net.add("Shape", [x]), net.constant(0, np.int64)])
    rows = net.add("Unsqueeze", [batch, net.constant([0], np.int64)])
    shape = net.add("Concat", [rows, net.constant([-1], np.int64)], axis=0)
    x = net.add("Reshape", [x, shape])
    return net.add("Gemm", [x, net.weights(4 * 36, 3)])


def mean_as_torch_writes_it(net: Network) -> str:
    """AdaptiveAvgPool2d(1) by the exporter of torch.export: as_strided becomes a Gather."""
    x = net.conv("x", 3, 4)
    batch = net.add("Squeeze", [net.add("Shape", [x], start=0, end=1)])
    x = net.add("ReduceMean", [x], axes=[2, 3], keepdims=1)
    flat = net.add("Reshape", [x, net.constant([-1], np.int64)])
    zero, one, channels = (net.constant(n, np.int64) for n in (0, 1, 4))
    first = net.add("Mul", [net.add("Range", [zero, batch, one]), channels])
    first = net.add("Unsqueeze", [first, net.constant([1, 2, 3], np.int64)])
    index = net.add("Add", [first, net.constant(np.arange(4).reshape(1, 4, 1, 1), np.int64)])
    return net.head(net.add("Gather", [flat, index], axis=0), 4)


SAME, LOWER = {"auto_pad": "SAME_UPPER"}, {"auto_pad": "SAME_LOWER"}
NETWORKS: dict[str, Builder] = {
    "plain conv": conv_of(),
    "uneven pads": conv_of(pads=[0, 1, 2, 1], strides=[2, 1]),
    "same upper": conv_of(strides=[2, 2], **SAME),
    "same lower": conv_of(strides=[2, 2], **LOWER),
    "valid": conv_of(auto_pad="VALID"),
    "dilated": conv_of(dilations=[2, 3], pads=[2, 3, 2, 3]),
    "wide padding": lambda net: net.head(net.conv("x", 3, 2, 1, pads=[1, 2, 0, 1]), 2 * 9 * 11),
    "depthwise": lambda net: net.head(net.conv("x", 3, 3, group=3), 3 * 36),
    "depthwise multiplier": lambda net: net.head(net.conv("x", 3, 6, group=3), 6 * 36),
    "grouped": lambda net: net.head(net.conv(net.conv("x", 3, 4), 4, 6, group=2), 6 * 16),
    "residual": residual,
    "dense block": dense_block,
    "pre-activation": pre_activation,
    "norm before conv": norm_before_conv,
    "normalized input": normalized_input,
    "reversed subtraction": reversed_subtraction,
    "constants": constants_around,
    "padded": padded,
    "clip after pool": clipped_after_pool,
    "two readers": two_readers,
    "means of rows and columns": row_then_column_mean,
    "min and max": bounds_by_min_and_max,
    "shape arithmetic": shape_arithmetic,
    "mean of torch.export": mean_as_torch_writes_it,
    "max pool": pool_of("MaxPool", kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1]),
    "max pool, rounded up": pool_of("MaxPool", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    **{
        f"{kind}, valid, rounded up": pool_of(
            kind, kernel_shape=[2, 2], strides=[2, 2], auto_pad="VALID", ceil_mode=1
        )
        for kind in ("MaxPool", "AveragePool")
    },
    "negated input": lambda net: net.head(
        net.conv(net.add("Mul", ["x", net.constant(-2.0)]), 3, 4), 4 * 36
    ),
    "average pool": pool_of("AveragePool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    "average pool, rounded up": pool_of(
        "AveragePool", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, count_include_pad=1
    ),
    "padding counts": pool_of(
        "AveragePool", kernel_shape=[3, 3], pads=[1, 0, 1, 1], count_include_pad=1
    ),
    "global max": lambda net: net.head(net.add("GlobalMaxPool", [net.conv("x", 3, 5)]), 5),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_are_those_of_onnx_runtime(name, tmp_path):
    for seed in range(3):
        net = Network(seed)
        check(net.save(tmp_path / "net.onnx", NETWORKS[name](net)))


def normalized_weights(net: Network) -> str:
    """Weights of unit length that are cut, split and bounded, as some exporters leave them."""
    stored = net.weights(8, 3, 3, 3)
    length = net.add("ReduceL2", [stored], axes=[1, 2, 3], keepdims=1)
    length = net.add("Max", [length, net.add("Abs", [net.constant(-1e-3)])])
    length = net.add("Expand", [length, net.constant([8, 3, 3, 3], np.int64)])
    bounds = [net.constant(-0.5), "", net.constant(0.4)]
    weights = net.add("Clip", [net.add("Div", [stored, length]), bounds[0], bounds[2]])
    weights = net.add("Clip", [weights, bounds[1], bounds[2]])
    positive = net.add("Greater", [weights, net.constant(0.1)])
    weights = net.add("Where", [positive, weights, net.add("Neg", [weights])])
    net.add("Split", [weights], output="first")
    net.nodes[-1].output.append("second")
    return net.add("Conv", [net.add("Conv", ["x", "second"]), square(net)])


def square(net: Network) -> str:
    """1x1 weights that a product of matrices makes."""
    product = net.add("MatMul", [net.weights(6, 5), net.weights(5, 4)])
    return net.add("Unsqueeze", [product, net.constant([2, 3], np.int64)])


def test_subgraphs_of_constants_are_computed(tmp_path):
    net = Network()
    path = net.save(tmp_path / "net.onnx", net.head(normalized_weights(net), 6 * 36))
    assert kinds(check(path)) == ["conv2d", "conv2d", "fully_connected"]


def test_batch_norm_constants_and_clippings_leave_layers_alone(tmp_path):
    found = {}
    for name in (
        "residual",
        "dense block",
        "norm before conv",
        "constants",
        "two readers",
        "clip after pool",
    ):
        net = Network()
        found[name] = check(net.save(tmp_path / "net.onnx", NETWORKS[name](net)))
    assert kinds(found["residual"]) == ["conv2d", "conv2d", "add", "mean", "fully_connected"]
    assert [op.activation for op in found["residual"].ops[:3]] == ["relu", "none", "relu"]
    kinds_of_block = kinds(found["dense block"])
    assert kinds_of_block[:5] == ["conv2d", "conv2d", *["concatenation"] * 2, "depthwise_conv2d"]
    assert kinds_of_block[5:] == [
        "conv2d",
        "concatenation",
        "mean",
        "concatenation",
        "fully_connected",
    ]
    assert found["dense block"].ops[3].activation == "relu"
    assert kinds(found["norm before conv"]) == ["conv2d", "max_pool", "conv2d", "mean"]
    assert kinds(found["constants"]) == ["conv2d", "fully_connected"]
    assert kinds(found["two readers"])[:3] == ["conv2d", "depthwise_conv2d", "depthwise_conv2d"]
    clipped = found["clip after pool"].ops[2]
    assert (clipped.kind, clipped.activation) == ("depthwise_conv2d", (0.0, pytest.approx(0.4)))


def test_paddings_are_joined_only_where_that_is_exact(tmp_path):
    net = Network()
    graph = check(net.save(tmp_path / "net.onnx", padded(net)))
    # The average counts the zeros, so its padding stays; the maximum follows a ReLU.
    assert kinds(graph) == ["conv2d", "max_pool", "pad", "average_pool", "mean"]
    assert graph.ops[0].padding == (0, 1, 1, 2)
    assert graph.ops[1].padding == (0, 1, 1, 2)


def test_a_softmax_at_the_end_is_left_out_and_named(tmp_path):
    net = Network()
    graph = onnx_float.read(net.save(tmp_path / "net.onnx", dense_layers(net)), input_std=1.0)
    inputs = np.random.default_rng(1).normal(size=(4, 3, 8, 8)).astype(np.float32)
    logits = np.exp(ours(graph, inputs))
    expected = run(tmp_path / "net.onnx", inputs)
    np.testing.assert_allclose(logits / logits.sum(1, keepdims=True), expected, atol=1e-5)
    assert graph.metadata["dropped_operators"] == ["n7 (Softmax)"]
    assert graph.metadata["source"] == "onnx net.onnx"
    assert kinds(graph) == ["conv2d", "max_pool", "fully_connected", "fully_connected"]
    assert graph.ops[2].activation == "relu"
    assert graph.blocks == {"B1": [0], "B2": [2], "head": [3], "all": [0, 2, 3]}


def test_a_feature_map_stays_one_through_quantization(tmp_path):
    net = Network()
    hidden = net.add("Relu", [net.conv("x", 3, 6, pads=[1, 1, 1, 1])])
    path = net.save(tmp_path / "net.onnx", net.conv(hidden, 6, 5, strides=[2, 2]))
    images = np.random.default_rng(1).integers(0, 256, (50, 8, 8, 3)).astype(np.uint8)
    model = Model.from_graph(quantize_graph(onnx_float.read(path), images))
    assert model.output_text == "3x3x5 features"
    expected = run(path, (images / np.float32(255)).transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)
    found = model.outputs(images)
    assert found.shape == expected.shape
    assert np.abs(found - expected).mean() < 0.02 * expected.std()


def keras(net: Network) -> str:
    """As tf2onnx writes a Keras network: images NHWC, flattened NHWC."""
    x = net.add("Mul", ["x", net.constant(1 / 127.5)])
    x = net.add("Transpose", [net.add("Sub", [x, net.constant(1.0)])], perm=[0, 3, 1, 2])
    x = net.add("Relu", [net.conv(x, 3, 5, strides=[2, 2], auto_pad="SAME_UPPER")])
    x = net.add("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = net.add("Transpose", [x], perm=[0, 2, 3, 1])
    x = net.add("Reshape", [x, net.constant([-1, 20], np.int64)])
    return net.add("Add", [net.add("MatMul", [x, net.weights(20, 4)]), net.weights(4)])


def keras_maps(net: Network) -> str:
    """A dense layer on every pixel, and layouts that cancel around an addition."""
    x = net.add("Transpose", ["x"], perm=[0, 3, 1, 2])
    x = net.conv(x, 3, 5)
    back = net.add("Transpose", [x], perm=[0, 2, 3, 1])
    dense = net.add("MatMul", [back, net.weights(5, 5)])
    x = net.add("Transpose", [net.add("Add", [dense, back])], perm=[0, 3, 1, 2])
    x = net.add("GlobalAveragePool", [net.conv(x, 5, 4)])
    return net.add("Squeeze", [x, net.constant([2, 3], np.int64)])


@pytest.mark.parametrize("build", [keras, keras_maps])
def test_layouts_of_keras(build, tmp_path):
    net = Network()
    path = net.save(tmp_path / "net.onnx", build(net), ("n", 8, 8, 3))
    graph = onnx_float.read(path, input_mean=0.0, input_std=1.0)
    assert graph.tensors[0].shape == (8, 8, 3)
    images = np.random.default_rng(2).uniform(0, 255, (3, 8, 8, 3)).astype(np.float32)
    found = ours(graph, images.transpose(0, 3, 1, 2))
    np.testing.assert_allclose(found, run(path, images).reshape(3, -1), rtol=1e-4, atol=1e-4)


def test_normalization_is_joined_with_the_formula_of_pixels(tmp_path):
    net = Network()
    path = net.save(tmp_path / "net.onnx", normalized_input(net))
    graph = onnx_float.read(path)  # the file's input is pixel / 255
    assert graph.input_mean == pytest.approx((102.0, 127.5, 153.0))
    assert graph.input_std == pytest.approx((51.0, 76.5, 25.5))
    graph = onnx_float.read(path, input_mean=(10, 20, 30), input_std=100)
    assert graph.input_mean == pytest.approx((50.0, 70.0, 90.0))
    assert graph.input_std == pytest.approx((20.0, 30.0, 10.0))


@pytest.mark.parametrize(
    ("option", "value"),
    [("input_std", (1.0, 0.0, 1.0)), ("input_std", (1.0, -1.0, 1.0)), ("input_mean", (1.0,))],
)
def test_wrong_formulas(option, value, tmp_path):
    net = Network()
    path = net.save(tmp_path / "net.onnx", residual(net))
    with pytest.raises(ValueError, match=rf"{option}=\[1\.0.*\]: (must be positive|needs one)"):
        onnx_float.read(path, **{option: value})


def test_old_opsets_say_bounds_and_axes_as_attributes(tmp_path):
    net = Network(opset=9)
    x = net.add("Clip", [net.conv("x", 3, 4)], min=0.0, max=6.0)
    x = net.add("Pad", [x], pads=[0, 0, 1, 1, 0, 0, 1, 1], value=0.0)
    x = net.add("ReduceMean", [net.conv(x, 4, 5)], axes=[2, 3], keepdims=1)
    x = net.add("Unsqueeze", [net.add("Squeeze", [x], axes=[2, 3])], axes=[2])
    path = net.save(tmp_path / "net.onnx", net.head(x, 5))
    graph = check(path)
    assert kinds(graph) == ["conv2d", "conv2d", "mean", "fully_connected"]
    assert graph.ops[0].activation == "relu6"
    assert graph.ops[1].padding == (1, 1, 1, 1)


def test_recent_opsets_say_axes_as_inputs(tmp_path):
    """And attributes as torch 2 writes them, with their usual values."""
    net = Network(opset=20)
    conv = net.conv("x", 3, 4, dilations=[1, 1], auto_pad="NOTSET")
    x = net.add("Dropout", [net.batch_norm(conv, 4, momentum=0.9, training_mode=0)])
    axes = net.constant([-1, -2], np.int64)
    x = net.add("ReduceMean", [net.add("Identity", [x]), axes], noop_with_empty_axes=0)
    x = net.add("Reshape", [x, net.constant([-1, 4], np.int64)], allowzero=1)
    x = net.add("Gemm", [x, net.weights(3, 4)], alpha=1.0, beta=1.0, transA=0, transB=1)
    graph = check(net.save(tmp_path / "net.onnx", net.add("Cast", [x], to=1)))
    assert kinds(graph) == ["conv2d", "mean", "fully_connected"]


def test_narrow_and_wide_floats_become_float32(tmp_path):
    for dtype in (np.float16, np.float64):
        net = Network()
        stored = [
            net.constant(net.rng.normal(0, 1, shape), dtype) for shape in ((4, 3, 3, 3), (4,))
        ]
        x = net.add("Conv", ["x", *(net.add("Cast", [name], to=1) for name in stored)])
        graph = check(net.save(tmp_path / "net.onnx", net.head(x, 4 * 36)))
        assert graph.ops[0].weights.dtype == np.float32


def test_whole_pixels_as_input(tmp_path):
    import onnx

    net = Network()
    x = net.add("Mul", [net.add("Cast", ["x"], to=1), net.constant(0.5)])
    output = net.head(net.conv(x, 3, 4), 4 * 36)
    path = net.save(tmp_path / "net.onnx", output, dtype=onnx.TensorProto.UINT8)
    graph = onnx_float.read(path)
    assert (graph.input_mean, graph.input_std) == ((0.0,) * 3, (2.0,) * 3)
    images = np.random.default_rng(3).integers(0, 256, (2, 3, 8, 8)).astype(np.uint8)
    np.testing.assert_allclose(ours(graph, images), run(path, images), rtol=1e-4, atol=1e-3)


def test_sums_of_two(tmp_path):
    net = Network()
    x = net.conv("x", 3, 4)
    total = net.add("Sum", [x, net.add("Relu", [x])])
    graph = check(net.save(tmp_path / "net.onnx", net.head(total, 4 * 36)))
    assert kinds(graph) == ["conv2d", "depthwise_conv2d", "add", "fully_connected"]
