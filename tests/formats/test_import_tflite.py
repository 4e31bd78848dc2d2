import itertools
from pathlib import Path

import emulator
import numpy as np
import pytest
from tflite_builder import SAME, VALID, TfliteBuilder, ramp, saved
from tflite_networks import generated

from pmt.formats.tflite import importer as tflite
from pmt.formats.tflite.network import short_name
from pmt.model import Model
from pmt.net.graph import Graph
from pmt.net.image import build_image, read_graph

RELU, RELU6 = 1, 3


def imported(tmp_path: Path, data: bytes, **options: object) -> Graph:
    return tflite.read(saved(tmp_path, data), **options)


def small_network() -> bytes:
    """Every supported operator once, with QUANTIZE before and SOFTMAX after them."""
    b = TfliteBuilder()
    image = b.activation(1, 7, 7, 3, dtype="FLOAT32")
    x = b.activation(1, 7, 7, 3, scale=0.02, zero=-5)
    padded = b.activation(1, 8, 8, 3, scale=0.02, zero=-5)
    conv = b.activation(1, 4, 4, 4, scale=0.1, zero=-128)
    deep = b.activation(1, 4, 4, 4, scale=0.05, zero=3)
    total = b.activation(1, 4, 4, 4, scale=0.2, zero=1)
    largest = b.activation(1, 2, 2, 4, scale=0.2, zero=1)
    average = b.activation(1, 2, 2, 4, scale=0.2, zero=1)
    mean = b.activation(1, 4, scale=0.1, zero=2)
    flat = b.activation(1, 1, 1, 4, scale=0.1, zero=2)
    logits = b.activation(1, 2, scale=0.3, zero=9)
    probability = b.activation(1, 2, scale=1 / 256, zero=-128)
    amounts = b.constant(np.array([[0, 0], [0, 1], [1, 0], [0, 0]], np.int32))
    axes = b.constant(np.array([1, 2], np.int32))
    shape = b.constant(np.array([1, 1, 1, 4], np.int32))
    w0 = b.constant(ramp(4, 3, 3, 3), scales=[0.1, 0.2, 0.3, 0.4], name="net/stem/Conv2D")
    w1 = b.constant(ramp(1, 3, 3, 4), scales=[0.5, 0.6, 0.7, 0.8], axis=3, name="net/x/y/depthwise")
    w2 = b.constant(ramp(2, 4), scales=[0.25], name="weights with blanks")
    b0 = b.constant(np.array([1, -2, 3, 4], np.int32), scales=[0.002, 0.004, 0.006, 0.008])
    b.op("QUANTIZE", [image], [x])
    b.op("PAD", [x, amounts], [padded])
    stride = {"StrideH": 2, "StrideW": 2}
    one = {"StrideH": 1, "StrideW": 1}
    b.op("CONV_2D", [padded, w0, b0], [conv], Padding=SAME, **stride, FusedActivationFunction=RELU6)
    b.op("DEPTHWISE_CONV_2D", [conv, w1, -1], [deep], Padding=SAME, **one)
    b.op("ADD", [conv, deep], [total], FusedActivationFunction=RELU)
    filters = {"FilterHeight": 2, "FilterWidth": 2}
    b.op("MAX_POOL_2D", [total], [largest], Padding=VALID, **stride, **filters)
    b.op("AVERAGE_POOL_2D", [largest], [average], Padding=SAME, **one, **filters)
    b.op("MEAN", [average, axes], [mean])
    b.op("RESHAPE", [mean, shape], [flat])
    b.op("FULLY_CONNECTED", [flat, w2], [logits])
    b.op("SOFTMAX", [logits], [probability])
    return b.bytes([image], [probability])


def test_a_concatenation_of_one_keeps_its_activation(tmp_path):
    b = TfliteBuilder()
    x, y, z = b.activation(1, 4, 4, 2), b.activation(1, 4, 4, 2), b.activation(1, 4, 4, 2)
    kernel = b.constant(ramp(2, 1, 1, 2), scales=[1.0])
    window = {"Padding": SAME, "StrideH": 1, "StrideW": 1, "FusedActivationFunction": 0}
    b.op("CONV_2D", [x, kernel], [y], **window)
    b.op("CONCATENATION", [y], [z], Axis=-1, FusedActivationFunction=1)
    (op,) = tflite.read(saved(tmp_path, b.bytes([x], [z]))).ops
    assert (op.kind, op.clamp) == ("conv2d", (0, 127))


def test_every_supported_operator(tmp_path):
    graph = imported(tmp_path, small_network())
    assert [(op.kind, op.name) for op in graph.ops] == [
        ("pad", "pad0"),
        ("conv2d", "stem"),
        ("depthwise_conv2d", "y"),
        ("add", "add0"),
        ("max_pool", "max_pool0"),
        ("average_pool", "average_pool0"),
        ("mean", "mean0"),
        ("reshape", "reshape0"),
        ("fully_connected", "dense0"),
    ]
    pad, conv, depthwise, add, largest, average, _mean, _reshape, dense = graph.ops
    assert pad.padding == (0, 1, 1, 0)
    assert (conv.stride, conv.padding) == ((2, 2), (0, 0, 1, 1))  # TFLite SAME at stride 2
    assert conv.clamp == (-128, -68)  # 6 / 0.1 steps above zero point -128
    assert conv.bias.tolist() == [1, -2, 3, 4]
    assert depthwise.padding == (1, 1, 1, 1)
    assert depthwise.weights.shape == (3, 3, 4)
    np.testing.assert_allclose(depthwise.weight_scales, [0.5, 0.6, 0.7, 0.8], rtol=1e-7)
    assert depthwise.bias.tolist() == [0, 0, 0, 0]
    assert add.clamp == (1, 127)
    assert (largest.kernel, largest.stride, largest.padding) == ((2, 2), (2, 2), (0, 0, 0, 0))
    assert average.padding == (0, 0, 1, 1)
    assert dense.weight_scales.tolist() == [0.25, 0.25]
    assert graph.tensors[graph.output].zero_point == 9
    assert graph.metadata["dropped_operators"] == ["op 0 QUANTIZE", "op 10 SOFTMAX"]
    assert graph.blocks == {"B1": [1], "B2": [2], "head": [8], "all": [1, 2, 8]}
    assert build_image(read_graph(build_image(graph))) == build_image(graph)


def test_own_preprocessing(tmp_path):
    graph = imported(tmp_path, small_network(), input_mean=[1, 2, 3], input_std=[4, 5, 6])
    assert (graph.input_mean, graph.input_std) == ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0))
    with pytest.raises(ValueError, match=r"input_mean=\[1.0\]: needs one finite number, or one"):
        imported(tmp_path, small_network(), input_mean=[1])


def test_names_are_unique(tmp_path):
    b = TfliteBuilder()
    tensors = [b.activation(1, 4, 4, 2) for _ in range(4)]
    for source, target in itertools.pairwise(tensors):
        w = b.constant(ramp(2, 1, 1, 2), scales=[1.0], name="net/same/Conv2D")
        b.op("CONV_2D", [source, w], [target], Padding=VALID, StrideH=1, StrideW=1)
    graph = imported(tmp_path, b.bytes([tensors[0]], [tensors[-1]]))
    assert [op.name for op in graph.ops] == ["same", "conv0", "conv1"]
    assert graph.blocks["B1"] == [0]


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"is not a \.tflite file, it has no 'TFL3'"):
        imported(tmp_path, b"\x1c\0\0\0ONNX" + bytes(100))


def test_names_of_fused_operators_are_those_of_the_convolution():
    fused = "net/bn_1/batchnorm/mul_1;net/depthwise_conv2d_1/depthwise;net/bn_1/batchnorm/mul"
    assert short_name(fused) == "depthwise_conv2d_1"
    assert short_name("model/conv2d_1/Conv2D;other") == "conv2d_1"
    assert short_name("net/dense_2/MatMul") == "dense_2"
    assert short_name("convolution") == ""
    assert short_name("weights with blanks") == ""


def test_float_and_uint8_ends_are_dropped(tmp_path):
    b = TfliteBuilder()
    pixels = b.activation(1, 4, 4, 3, scale=0.25, zero=100, dtype="UINT8")
    x = b.activation(1, 4, 4, 3, scale=0.25, zero=-28)
    y, z = b.activation(1, 2, scale=0.5), b.activation(1, 2, scale=1 / 256, zero=-128)
    end = b.activation(1, 2, scale=1 / 256, dtype="UINT8")
    w = b.constant(ramp(2, 48), scales=[0.01], name="head/MatMul")
    b.op("QUANTIZE", [pixels], [x])
    b.op("FULLY_CONNECTED", [x, w, -1], [y])
    b.op("SOFTMAX", [y], [z])
    b.op("QUANTIZE", [z], [end])
    graph = imported(tmp_path, b.bytes([pixels], [end]))
    assert [op.name for op in graph.ops] == ["head"]
    assert graph.metadata["dropped_operators"] == ["op 0 QUANTIZE", "op 2 SOFTMAX", "op 3 QUANTIZE"]
    # The file's own input is the pixel: real = 0.25 * (pixel - 100).
    assert (graph.input_mean, graph.input_std) == ((100.0,) * 3, (4.0,) * 3)
    values = np.arange(256, dtype=np.uint8).repeat(3)[: 5 * 48].reshape(5, 4, 4, 3)
    np.testing.assert_array_equal(emulator.quantize_pixels(graph, values), values.astype(int) - 128)


def test_a_network_that_normalizes_its_output_gives_features(tmp_path):
    b = TfliteBuilder()
    x = b.activation(1, 4, 4, 3, scale=0.25)
    y, z = b.activation(1, 6, scale=0.5), b.activation(1, 6, scale=1 / 128)
    w = b.constant(ramp(6, 48), scales=[0.01], name="embedding/MatMul")
    b.op("FULLY_CONNECTED", [x, w, -1], [y])
    b.op("L2_NORMALIZATION", [y], [z])
    graph = imported(tmp_path, b.bytes([x], [z]))
    assert graph.metadata["dropped_operators"] == ["op 1 L2_NORMALIZATION"]
    assert Model.from_graph(graph).output_text == "6 features"


def test_channels_first_input_is_read_channels_last(tmp_path):
    b = TfliteBuilder()
    image, x = b.activation(1, 3, 4, 6, dtype="FLOAT32"), b.activation(1, 3, 4, 6)
    y, z = b.activation(1, 4, 6, 3), b.activation(1, 2)
    w = b.constant(ramp(2, 72), scales=[0.01])
    b.op("QUANTIZE", [image], [x])
    b.op("TRANSPOSE", [x, b.constant(np.array([0, 2, 3, 1], np.int32))], [y])
    b.op("FULLY_CONNECTED", [y, w], [z])
    b.op("DEQUANTIZE", [z], [b.activation(1, 2, dtype="FLOAT32")])
    graph = imported(tmp_path, b.bytes([image], [4 + 2]))
    assert [op.kind for op in graph.ops] == ["fully_connected"]
    assert (graph.tensors[0].height, graph.tensors[0].width, graph.tensors[0].channels) == (4, 6, 3)


def test_layers_are_found_again_in_the_file(tmp_path):
    lowered = tflite.lower(saved(tmp_path, generated("mixed")))
    stored = list(lowered.layers.values())
    assert len(stored) == 6
    assert stored[-1].bias == -1
    names = [lowered.graph.ops[i].name for i in lowered.graph.blocks["all"]]
    assert names == list(lowered.layers)
    helpers = lowered.graph.metadata["helper_layers"]
    assert helpers == ["multiply0", "subtract0", "requantize0"]
    assert set(helpers).isdisjoint(names)


def test_zeros_stand_for_groups_and_dilation(tmp_path):
    b = TfliteBuilder()
    x, y = b.activation(1, 9, 9, 4), b.activation(1, 9, 9, 2)
    w = b.constant(ramp(2, 3, 1, 2) | 1, scales=[1.0])
    b.op("CONV_2D", [x, w], [y], Padding=SAME, StrideH=1, StrideW=1, DilationHFactor=2)
    conv = imported(tmp_path, b.bytes([x], [y])).ops[0]
    assert (conv.kernel, conv.padding) == ((5, 1), (2, 0, 2, 0))
    weights = conv.weights
    assert (weights != 0).reshape(2, 5, 4).tolist() == [
        [[True, True, False, False], [False] * 4] * 2 + [[True, True, False, False]],
        [[False, False, True, True], [False] * 4] * 2 + [[False, False, True, True]],
    ]
    np.testing.assert_array_equal(weights[1, ::2, 0, 2:], (ramp(2, 3, 1, 2) | 1)[1, :, 0])


def test_resnet8_structure(resnet8_path):
    graph = tflite.read(resnet8_path)
    layers = [op.name for op in graph.ops if op.weights is not None]
    assert layers == ["conv2d", *(f"conv2d_{i}" for i in range(1, 9)), "dense"]
    assert graph.blocks["B1"] == [0, 1, 2]
    assert graph.blocks["head"] == [14]
    assert "paper14" not in graph.blocks
    assert graph.metadata["dropped_operators"] == ["op 15 SOFTMAX"]
    assert graph.ops[4].padding == (0, 0, 1, 1)
    assert (graph.input_mean, graph.input_std) == ((0.0,) * 3, (1.0,) * 3)
    assert sum(op.weights.size for op in graph.ops if op.weights is not None) == 77360
    assert min(int(op.weights.min()) for op in graph.ops if op.weights is not None) == -127
