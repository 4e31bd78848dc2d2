"""A keyword spotter as a .tflite file, with the operators of MLPerf Tiny's kws_ref_model.

A DS-CNN of 49 x 10 MFCC and 12 words: random filters, a head solved by least squares.
"""

import numpy as np
from tflite_builder import TfliteBuilder

from pmt.datasets import Dataset
from pmt.net.graph import Graph, Op
from pmt.quantization import FloatGraph, FloatOp, FloatTensor, float_logits, quantize_graph

WORDS, CHANNELS = 12, 64
SAME, VALID, NONE, RELU = 0, 1, 0, 1


def spoken_words(count: int, seed: int, *, drift: float = 0.0) -> Dataset:
    """Windows (49, 10, 1) of twelve words: each has its own pattern, moved in time, in noise.

    With a drift, the coefficients are weighed and moved as by another microphone.
    """
    patterns = np.random.default_rng(7).normal(0, 1, (WORDS, 49, 10))
    r = np.random.default_rng([8, seed])
    labels = r.integers(0, WORDS, count)
    moved = [np.roll(patterns[word], r.integers(-1, 2), axis=0) for word in labels]
    heard = np.stack(moved) + r.normal(0, 0.5, (count, 49, 10))
    other = np.random.default_rng(9).normal(0, drift, (2, 10))
    windows = (heard * np.exp(other[0]) + other[1]).astype(np.float32)
    return Dataset.from_arrays(windows[..., None], labels, name="words")


def keyword_spotter() -> bytes:
    """The file: convolution, four separable ones, average pool, dense, softmax."""
    return _file(quantize_graph(_float_network(), spoken_words(200, 0).images))


def _float_network() -> FloatGraph:
    r = np.random.default_rng(1)

    def layer(kind: str, name: str, shape: tuple[int, ...], fan_in: int, **more: object) -> FloatOp:
        weights = r.normal(0, (2 / fan_in) ** 0.5, shape).astype(np.float32)
        out = shape[2] if kind == "depthwise_conv2d" else shape[0]
        bias = np.zeros(out, np.float32)
        return FloatOp(kind, name, (), 0, weights=weights, bias=bias, activation="relu", **more)

    around, n = (1, 1, 1, 1), CHANNELS
    kernel = {"kernel": (10, 4), "stride": (2, 2), "padding": (4, 1, 5, 1)}
    ops = [layer("conv2d", "conv", (n, 10, 4, 1), 40, **kernel)]
    for i in range(4):
        depthwise = {"kernel": (3, 3), "padding": around}
        ops.append(layer("depthwise_conv2d", f"depthwise{i}", (3, 3, n), 9, **depthwise))
        ops.append(layer("conv2d", f"pointwise{i}", (n, 1, 1, n), n))
    ops.append(FloatOp("average_pool", "pool", (), 0, kernel=(25, 5), stride=(25, 5)))
    for i, op in enumerate(ops):
        op.inputs, op.output = (i,), i + 1
    tensors = [FloatTensor("mfcc", 49, 10, 1)]
    tensors += [FloatTensor(op.name, 25, 5, n) for op in ops[:-1]] + [FloatTensor("pool", 1, 1, n)]
    body = FloatGraph(tensors, ops, 0, len(ops), (), ())
    taught = spoken_words(600, 1)
    features = np.c_[float_logits(body, taught.images), np.ones(len(taught))]
    wanted = 10 * np.eye(WORDS)[taught.labels] - 5
    squares = features.T @ features + 1e-3 * np.eye(n + 1)
    head = np.linalg.solve(squares, features.T @ wanted).astype(np.float32)
    last, parameters = len(ops), {"weights": head[:-1].T, "bias": head[-1]}
    ops.append(FloatOp("fully_connected", "dense", (last,), last + 1, **parameters))
    tensors.append(FloatTensor("logits", 1, 1, WORDS))
    return FloatGraph(tensors, ops, 0, len(ops), (), ())


def _file(graph: Graph) -> bytes:
    b = TfliteBuilder()
    first = graph.tensors[0]
    source = current = b.activation(1, *first.shape, scale=first.scale, zero=first.zero_point)
    for op in graph.ops:
        if op.kind == "fully_connected":  # behind Keras' Flatten
            x = graph.tensors[op.inputs[0]]
            flat = b.activation(1, x.elements, scale=x.scale, zero=x.zero_point)
            b.op("RESHAPE", [current, b.constant(np.array([-1, x.elements], np.int32))], [flat])
            current = flat
        current = _operator(b, graph, op, current)
    probabilities = b.activation(1, WORDS, scale=1 / 256, zero=-128)
    b.op("SOFTMAX", [current], [probabilities], Beta=1.0)
    return b.bytes([source], [probabilities])


def _operator(b: TfliteBuilder, graph: Graph, op: Op, source: int) -> int:
    x, y = graph.tensors[op.inputs[0]], graph.tensors[op.output]
    shape = (1, WORDS) if op.kind == "fully_connected" else (1, *y.shape)
    target = b.activation(*shape, scale=y.scale, zero=y.zero_point)
    window = {"StrideH": op.stride[0], "StrideW": op.stride[1], "Padding": SAME}
    if op.kind == "average_pool":
        size = {"FilterHeight": op.kernel[0], "FilterWidth": op.kernel[1]}
        b.op("AVERAGE_POOL_2D", [source], [target], **{**window, **size, "Padding": VALID})
        return target
    assert op.weights is not None
    assert op.bias is not None
    assert op.weight_scales is not None
    scales = op.weight_scales.astype(float)
    depthwise = op.kind == "depthwise_conv2d"
    weights = op.weights[None] if depthwise else op.weights
    stored = b.constant(weights, scales=list(scales), axis=3 if depthwise else 0, name=op.name)
    bias = b.constant(op.bias, scales=list(x.scale * scales))
    kind = {
        "conv2d": ("CONV_2D", {**window, "DilationHFactor": 1, "DilationWFactor": 1}),
        "depthwise_conv2d": (
            "DEPTHWISE_CONV_2D",
            {**window, "DilationHFactor": 1, "DilationWFactor": 1, "DepthMultiplier": 1},
        ),
        "fully_connected": ("FULLY_CONNECTED", {}),
    }[op.kind]
    activation = NONE if op.kind == "fully_connected" else RELU
    b.op(kind[0], [source, stored, bias], [target], **kind[1], FusedActivationFunction=activation)
    return target
