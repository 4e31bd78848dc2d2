"""Every supported operator, and whole networks, against LiteRT's reference kernels."""

from collections.abc import Callable
from pathlib import Path

import litert_engine
import numpy as np
import pytest
from drawn_graphs import int8_outputs
from importer_differences import LiteRTActivations, litert_activations
from tflite_builder import TfliteBuilder
from tflite_networks import (
    GENERATED,
    RELU,
    RELU6,
    RELU_N1_TO_1,
    SAME,
    VALID,
    NetworkBuilder,
    Value,
    generated,
)

import pmt
from pmt.formats.tflite import importer as tflite

pytest.importorskip("ai_edge_litert")

Part = Callable[[NetworkBuilder, Value], Value]


def computed(path: Path, images: int = 12) -> LiteRTActivations:
    graph = tflite.lower(path).graph
    source = graph.tensors[graph.input]
    rng = np.random.default_rng(1)
    drawn = rng.integers(-128, 128, (images, *source.shape)).astype(np.int8)
    return litert_activations(path, drawn)


def largest(reference: LiteRTActivations) -> int:
    return max(int(steps.max()) for steps in reference.steps_off().values())


def space_conv(b: NetworkBuilder, x: Value) -> Value:
    """A dilated convolution as converters write it."""
    y = b.space_to_batch(x, 2, (2, 2))
    y = b.conv(Value(y.index, (1, *y.shape[1:]), y.scale, y.zero, y.spread), 6, padding=VALID)
    y = Value(y.index, (4, *y.shape[1:]), y.scale, y.zero, y.spread)
    b.file.tensors[y.index]["shape"] = y.shape
    return b.batch_to_space(y, 2, 10, (0, 0))


# Name: what it appends to a 10x10x4 activation, and the kinds of ops that become of it.
PARTS: dict[str, tuple[Part, list[str]]] = {
    "conv SAME stride 2": (lambda b, x: b.conv(x, 6, 3, stride=2), ["conv2d"]),
    "conv VALID relu": (lambda b, x: b.conv(x, 6, 3, padding=VALID, activation=RELU), ["conv2d"]),
    "conv relu6": (lambda b, x: b.conv(x, 6, 5, activation=RELU6), ["conv2d"]),
    "conv relu_n1_to_1": (lambda b, x: b.conv(x, 6, 1, activation=RELU_N1_TO_1), ["conv2d"]),
    "conv per tensor": (lambda b, x: b.conv(x, 6, 3, per_tensor=True), ["conv2d"]),
    "conv groups": (lambda b, x: b.conv(x, 6, 3, groups=2), ["conv2d"]),
    "conv one channel a group": (lambda b, x: b.conv(x, 8, 3, groups=4), ["depthwise_conv2d"]),
    "conv dilated": (lambda b, x: b.conv(x, 6, 3, dilation=3), ["conv2d"]),
    "conv dilated in batches": (space_conv, ["conv2d"]),
    "depthwise": (lambda b, x: b.depthwise(x, 3, stride=2), ["depthwise_conv2d"]),
    "depthwise times 3": (lambda b, x: b.depthwise(x, 3, multiplier=3), ["depthwise_conv2d"]),
    "depthwise dilated": (lambda b, x: b.depthwise(x, 3, dilation=2), ["depthwise_conv2d"]),
    "dense": (lambda b, x: b.dense(x, 7, activation=RELU), ["fully_connected"]),
    "dense of positions": (lambda b, x: b.dense(x, 7, keep=True), ["conv2d"]),
    "dense without bias": (lambda b, x: b.dense(x, 7, bias=False), ["fully_connected"]),
    "add": (lambda b, x: b.add(x, b.quantize(x), RELU), ["depthwise_conv2d", "add"]),
    "concatenation": (lambda b, x: b.concatenation(x, x), ["concatenation"]),
    "concatenation of four": (
        lambda b, x: b.concatenation(x, b.limit("MINIMUM", x, 9), x, x),
        ["max_pool", *["concatenation"] * 3],
    ),
    "concatenation of what is requantized": (
        lambda b, x: b.concatenation(y := b.quantize(x), y),
        ["concatenation"],
    ),
    "concatenation of vectors, relu": (
        lambda b, x: b.activate("RELU", b.concatenation(y := b.dense(x, 9), y, axis=1)),
        ["fully_connected", "concatenation"],
    ),
    "add constant": (lambda b, x: b.with_constant("ADD", x, activation=RELU), ["depthwise_conv2d"]),
    "sub constant": (lambda b, x: b.with_constant("SUB", x), ["depthwise_conv2d"]),
    "sub from constant": (lambda b, x: b.with_constant("SUB", x, first=True), ["depthwise_conv2d"]),
    "mul constant": (lambda b, x: b.with_constant("MUL", x), ["depthwise_conv2d"]),
    "mul one constant": (lambda b, x: b.with_constant("MUL", x, scalar=True), ["depthwise_conv2d"]),
    "requantize": (lambda b, x: b.quantize(x), ["depthwise_conv2d"]),
    "requantize to the same": (lambda b, x: b.renamed("QUANTIZE", x, x.shape), []),
    "transpose of a vector": (
        lambda b, x: b.renamed(
            "TRANSPOSE",
            b.reduce("MEAN", x, (1, 2), keep=True),
            (1, 4, 1, 1),
            b.integers(0, 3, 1, 2),
        ),
        ["mean", "reshape"],
    ),
    "relu after the stem": (lambda b, x: b.activate("RELU", x), []),
    "relu of what is read twice": (
        lambda b, x: b.add(b.activate("RELU", x), x),
        ["max_pool", "add"],
    ),
    "relu after conv": (lambda b, x: b.activate("RELU", b.conv(x, 5)), ["conv2d"]),
    "relu6 after add": (lambda b, x: b.activate("RELU6", b.add(x, x)), ["add"]),
    "relu_n1_to_1 requantizing": (
        lambda b, x: b.activate("RELU_N1_TO_1", x, requantize=True),
        ["depthwise_conv2d"],
    ),
    "limits": (lambda b, x: b.limit("MINIMUM", b.limit("MAXIMUM", x, -60), 50), []),
    "limit of what is read twice": (
        lambda b, x: b.add(b.limit("MINIMUM", x, 20), x),
        ["max_pool", "add"],
    ),
    "average pool": (lambda b, x: b.pool("AVERAGE_POOL_2D", x, 3, padding=SAME), ["average_pool"]),
    "average pool relu": (
        lambda b, x: b.pool("AVERAGE_POOL_2D", x, 2, activation=RELU),
        ["average_pool"],
    ),
    "max pool": (lambda b, x: b.pool("MAX_POOL_2D", x, 3, padding=SAME), ["max_pool"]),
    "mean": (lambda b, x: b.reduce("MEAN", x, (1, 2)), ["mean"]),
    "mean keeping dimensions": (lambda b, x: b.reduce("MEAN", x, (-2, -3), keep=True), ["mean"]),
    "global max": (lambda b, x: b.reduce("REDUCE_MAX", x, (1, 2)), ["max_pool"]),
    "pad": (lambda b, x: b.pad(x, (1, 2), (0, 3)), ["pad"]),
    "pad before conv": (
        lambda b, x: b.conv(b.pad(x, (1, 2), (2, 0)), 5, 3, padding=VALID),
        ["conv2d"],
    ),
    "pad with lowest before max pool": (
        lambda b, x: b.pool("MAX_POOL_2D", b.pad(x, (1, 1), (1, 1), -128), 3),
        ["max_pool"],
    ),
    "pad with a value": (
        lambda b, x: b.pad(x, (1, 0), (2, 1), 77),
        ["depthwise_conv2d", "pad", "depthwise_conv2d"],
    ),
    "reshape": (lambda b, x: b.reshape(x, 1, 20, 5, 4), ["reshape"]),
    "flatten, computed": (lambda b, x: b.computed_reshape(x, 1, 400), ["reshape"]),
    "expand": (lambda b, x: b.renamed("EXPAND_DIMS", x, (1, 10, 1, 10, 4), b.integers(2)), []),
}


@pytest.mark.parametrize("name", PARTS)
def test_operator_is_within_one_step(tmp_path, name):
    part, kinds = PARTS[name]
    b = NetworkBuilder(seed=3)
    x = b.image(10, 10, 3)
    stem = b.conv(x, 4, 1)
    y = part(b, stem)
    path = tmp_path / "net.tflite"
    if len(y.shape) > 4:
        y = b.reshape(y, 1, 10, 10, 4)
    path.write_bytes(b.bytes(x, b.dense(y, 3)))
    reference = computed(path)
    ops = {op.name: op.kind for op in reference.graph.ops}
    assert list(ops.values())[1:-1] == kinds
    for op, steps in reference.steps_off().items():
        assert steps.max() <= 1, op
        # Roundings alone: of a pool's or a mean's values many are halves, which round another way.
        halves = ops[op] in ("average_pool", "mean")
        assert (steps > 0).mean() <= (0.2 if halves else 0.02), op
    assert reference.logits.std() > 5  # the comparison is not one of constants


@pytest.mark.parametrize("name", GENERATED)
@pytest.mark.parametrize("seed", [0, 1])
def test_generated_network_predicts_the_same_classes(tmp_path, name, seed):
    path = tmp_path / "net.tflite"
    path.write_bytes(generated(name, seed))
    reference = computed(path, images=20)
    assert largest(reference) == 1
    same, margin = reference.top_one(whole=True)
    assert same[margin > 0].all()
    assert (margin == 0).sum() <= 5


@pytest.mark.parametrize("seed", range(2, 22))
def test_drawn_networks(tmp_path, seed):
    path = tmp_path / "net.tflite"
    path.write_bytes(generated("drawn", seed))
    assert largest(computed(path, images=5)) <= 1


# Files that TensorFlow's converter wrote: what their operators become.
KERAS = {
    "mobilenet_uint8": "conv2d depthwise_conv2d conv2d conv2d depthwise_conv2d conv2d add mean "
    "conv2d",
    "mixed": "multiply0 add_constant0 conv2d conv2d conv2d add_constant1 depthwise_conv2d "
    "add_constant2 multiply1 add_constant3 max_pool average_pool multiply2 add_constant4 conv2d "
    "reshape fully_connected fully_connected",
    "resnet_float": "conv2d max_pool multiply0 add_constant0 conv2d conv2d add multiply1 "
    "add_constant1 conv2d conv2d conv2d add reshape mean fully_connected",
    "positions": "conv2d add_constant0 conv2d add_constant1 max_pool fully_connected",
    "signal": "conv2d max_pool pad conv2d add_constant0 mean fully_connected",
}


@pytest.mark.parametrize("name", KERAS)
def test_files_of_the_real_converter(name):
    path = Path(__file__).parents[1] / "keras" / f"{name}.tflite"
    reference = computed(path, images=20)
    graph = reference.graph
    helpers = graph.metadata.get("helper_layers", [])
    assert " ".join(op.name if op.name in helpers else op.kind for op in graph.ops) == KERAS[name]
    assert largest(reference) == 1
    (head, margin), (whole, _) = reference.top_one(whole=False), reference.top_one(whole=True)
    assert head[margin > 0].all()
    assert (~whole & (margin > 0)).sum() <= 1
    assert margin[~whole].max(initial=0) <= 2


def test_resnet8_on_real_images(resnet8_path, cifar10_dir):
    records = np.fromfile(cifar10_dir / "test_batch.bin", np.uint8).reshape(-1, 3073)[:25]
    pixels = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    reference = litert_activations(resnet8_path, (pixels.astype(np.int16) - 128).astype(np.int8))
    found = reference.steps_off()
    assert list(found)[:3] == ["conv2d", "conv2d_1", "conv2d_2"]
    steps = np.concatenate([steps.ravel() for steps in found.values()])
    assert steps.max() == 1
    assert (steps > 0).mean() < 0.005
    (head, margin), (whole, _) = reference.top_one(whole=False), reference.top_one(whole=True)
    assert head.all()
    assert margin.min() > 0
    # Differences of one step a layer add up over 14 ops to a few steps of the logits.
    assert whole.sum() >= 24
    assert margin[~whole].max(initial=0) <= 3


def test_a_uint8_network_of_symmetric_weights(tmp_path):
    rng = np.random.default_rng(0)
    b = TfliteBuilder()

    def weights(*shape: int, scale: float) -> int:
        values = rng.integers(1, 256, shape).astype(np.uint8)  # 128 stands for 0
        return b.constant(values, scales=[scale], zero=128)

    def activation(*shape: int, scale: float, zero: int) -> int:
        return b.activation(1, *shape, scale=scale, zero=zero, dtype="UINT8")

    window = {"Padding": SAME, "StrideH": 1, "StrideW": 1, "FusedActivationFunction": RELU}
    depthwise = {**window, "DepthMultiplier": 1, "DilationWFactor": 1, "DilationHFactor": 1}
    x, y = activation(8, 8, 3, scale=1 / 255, zero=0), activation(8, 8, 6, scale=0.02, zero=0)
    z, joined = activation(8, 8, 6, scale=0.02, zero=0), activation(8, 8, 12, scale=0.02, zero=0)
    pooled, logits = activation(12, scale=0.02, zero=0), activation(4, scale=0.1, zero=120)
    bias = [b.constant(rng.integers(-900, 900, n).astype(np.int32)) for n in (6, 6, 4)]
    axes = b.constant(np.array([1, 2], np.int32))
    b.op("CONV_2D", [x, weights(6, 3, 3, 3, scale=0.006), bias[0]], [y], **window)
    b.op("DEPTHWISE_CONV_2D", [y, weights(1, 3, 3, 6, scale=0.004), bias[1]], [z], **depthwise)
    b.op("CONCATENATION", [y, z], [joined], Axis=3, FusedActivationFunction=0)
    b.op("MEAN", [joined, axes], [pooled])
    b.op("FULLY_CONNECTED", [pooled, weights(4, 12, scale=0.02), bias[2]], [logits])
    path = tmp_path / "net.tflite"
    path.write_bytes(b.bytes([x], [logits]))
    model = pmt.load(path)
    images = rng.integers(0, 256, (20, 8, 8, 3)).astype(np.uint8)
    np.testing.assert_array_equal(model.prepare(images), (images.astype(int) - 128).astype(np.int8))
    theirs = litert_engine.outputs(path.read_bytes(), images, reference=True).astype(int) - 128
    ours = int8_outputs(model, model.prepare(images)).astype(int)
    assert np.abs(ours - theirs).max() <= 1
    assert theirs.std() > 5
