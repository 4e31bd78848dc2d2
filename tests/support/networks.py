"""Small networks for tests, built as graphs."""

from dataclasses import replace
from typing import Any

import numpy as np

import pmt
from pmt import datasets
from pmt.datasets import Dataset
from pmt.model import Model
from pmt.net.graph import Graph, Op, Tensor

SAME = {"kernel": (3, 3), "padding": (1, 1, 1, 1)}


def drawn_parameters(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    *,
    most: int = 90,
    bias: int = 900,
    scales: tuple[float, float] = (0.002, 0.006),
) -> dict[str, Any]:
    """Weights of a shape, biases and scales of a layer that keep its outputs inside int8."""
    out = shape[2] if len(shape) == 3 else shape[0]
    return {
        "weights": rng.integers(-most, most + 1, shape).astype(np.int8),
        "bias": rng.integers(-bias, bias, out).astype(np.int32),
        "weight_scales": rng.uniform(*scales, out).astype(np.float32),
    }


def network_with_statistics() -> Model:
    """The bundled network with statistics of clean images."""
    clean = datasets.bundled("train").images[-256:]
    return pmt.statistics(pmt.load("fashion_mnist_dscnn"), clean)


def model_of(
    tensors: list[Tensor],
    ops: list[Op],
    blocks: dict[str, list[int]],
    *,
    name: str = "",
    formula: tuple[float, float] = (128.0, 128.0),
) -> Model:
    """The model from the first tensor to the last, its mean and std alike in all channels."""
    mean, std = ((value,) * min(tensors[0].channels, 4) for value in formula)
    metadata = {"name": name} if name else {}
    last = len(tensors) - 1
    return Model.from_graph(Graph(tensors, ops, 0, last, mean, std, blocks, metadata))


def smooth_network(
    *, size: int = 4, channels: int = 3, hidden: int = 4, classes: int = 3, seed: int = 0
) -> Model:
    """Conv2d, then a linear head that reads its int8 output.

    The head's logits are exact accumulators, so the loss is a smooth function of the head's weights
    and of the convolution's output: no rounding stands between a perturbation there and the loss.
    The convolution's output stays far from its clamps.
    """
    rng = np.random.default_rng(seed)
    tensors = [
        Tensor("input", size, size, channels, 1 / 128, 0),
        Tensor("nodes", size, size, hidden, 1 / 32, 3),
        Tensor("logits", 1, 1, classes, 0.1, 0),
    ]
    shape = (hidden, 3, 3, channels)
    conv = drawn_parameters(rng, shape, most=40, bias=500, scales=(0.002, 0.004))
    head = drawn_parameters(rng, (classes, size * size * hidden), most=60, bias=50)
    head["weight_scales"] = np.full(classes, 0.0008, np.float32)
    ops = [
        Op("conv2d", "conv", (0,), 1, **SAME, **conv),
        Op("fully_connected", "head", (1,), 2, **head),
    ]
    return model_of(tensors, ops, {"B1": [0], "head": [1], "all": [0, 1]}, name="smooth")


def residual_network(*, size: int = 8, width: int = 8, classes: int = 4, seed: int = 0) -> Model:
    """A conv2d, an inverted residual block with its addition, a strided block, a mean, a head."""
    rng = np.random.default_rng(seed)
    half, wide = size // 2, 2 * width
    tensors = [
        Tensor("input", size, size, 3, 1 / 128, 0),
        Tensor("stem", size, size, width, 0.02, -128),
        Tensor("expand", size, size, wide, 0.02, -128),
        Tensor("depth", size, size, wide, 0.02, -128),
        Tensor("project", size, size, width, 0.04, 4),
        Tensor("sum", size, size, width, 0.05, -9),
        Tensor("down", half, half, width, 0.03, -128),
        Tensor("pooled", 1, 1, width, 0.02, -100),
        Tensor("logits", 1, 1, classes, 0.1, 0),
    ]

    def layer(kind: str, name: str, source: int, *weights: int, **more: Any) -> Op:
        return Op(kind, name, (source,), source + 1, **drawn_parameters(rng, weights), **more)

    strided = {"kernel": (3, 3), "stride": (2, 2), "padding": (0, 0, 1, 1)}
    ops = [
        layer("conv2d", "stem", 0, width, 3, 3, 3, **SAME),
        layer("conv2d", "expand", 1, wide, 1, 1, width),
        layer("depthwise_conv2d", "depth", 2, 3, 3, wide, **SAME),
        layer("conv2d", "project", 3, width, 1, 1, wide),
        Op("add", "sum", (1, 4), 5),
        layer("conv2d", "down", 5, width, 3, 3, width, **strided),
        Op("mean", "pooled", (6,), 7),
        layer("fully_connected", "head", 7, classes, width),
    ]
    blocks = {"B1": [0, 1], "B2": [2, 3], "B3": [5], "head": [7], "all": [0, 1, 2, 3, 5, 7]}
    return model_of(tensors, ops, blocks, name="residual")


def pixels(model: Model, count: int, seed: int = 0) -> np.ndarray:
    """Random uint8 images of the model's input size."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (count, *model.input_shape)).astype(np.uint8)


def labels(model: Model, count: int, seed: int = 0) -> np.ndarray:
    """Random int64 labels."""
    return np.random.default_rng(seed + 1).integers(0, model.classes, count)


def random_dataset(model: Model, count: int, seed: int = 0) -> Dataset:
    """Random images and labels that fit a model."""
    names = tuple(f"class {i}" for i in range(model.classes))
    return Dataset(pixels(model, count, seed), labels(model, count, seed), names, "random")


def bright_dataset(count: int = 80, seed: int = 0) -> Dataset:
    """Images 8x8x3 whose brightness tells which of four classes they have."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, count)
    images = rng.integers(0, 60, (count, 8, 8, 3)).astype(np.uint8)
    images += (y * 60).astype(np.uint8)[:, None, None, None]
    return Dataset(images, y, tuple("abcd"), "brightness")


def chain() -> Model:
    """4x4x2 -> conv 3x3 -> 4x4x8 -> depthwise 3x3 -> 4x4x8 -> mean -> linear -> 4 classes."""
    tensors = [
        Tensor("input", 4, 4, 2, 0.01, 0),
        Tensor("wide", 4, 4, 8, 0.02, 0),
        Tensor("deep", 4, 4, 8, 0.02, 0),
        Tensor("pooled", 1, 1, 8, 0.02, 0),
        Tensor("logits", 1, 1, 4, 0.1, 0),
    ]

    def layer(kind: str, name: str, source: int, *weights: int, **more: Any) -> Op:
        out = tensors[source + 1].channels
        scales, bias = np.full(out, 0.01, np.float32), np.zeros(out, np.int32)
        parameters = {"weights": np.ones(weights, np.int8), "bias": bias, "weight_scales": scales}
        return Op(kind, name, (source,), source + 1, **parameters, **more)

    ops = [
        layer("conv2d", "conv", 0, 8, 3, 3, 2, **SAME),
        layer("depthwise_conv2d", "depth", 1, 3, 3, 8, **SAME),
        Op("mean", "pool", (2,), 3),
        layer("fully_connected", "head", 3, 4, 8),
    ]
    return model_of(tensors, ops, {"head": [3], "all": [0, 1, 3]})


# Multiply-accumulates: 16 positions x 9 taps x 2 x 8, 16 x 9 x 8, 8 x 4.
CONV, DEPTH, HEAD = 2304, 1152, 32


def every_op(*, seed: int = 0) -> Model:
    """A pad, a strided conv2d with a clamp, both poolings, a reshape of an image, a head."""
    rng = np.random.default_rng(seed)
    tensors = [
        Tensor("input", 9, 7, 3, 1 / 64, -5),
        Tensor("padded", 12, 10, 3, 1 / 64, -5),
        Tensor("conv", 5, 4, 6, 0.03, -20),
        Tensor("largest", 5, 4, 6, 0.03, -20),
        Tensor("average", 2, 2, 6, 0.03, -20),
        Tensor("flat", 1, 1, 24, 0.03, -20),
        Tensor("logits", 1, 1, 4, 0.1, 3),
    ]

    ops = [
        Op("pad", "pad", (0,), 1, padding=(2, 1, 1, 2)),
        Op(
            "conv2d", "conv", (1,), 2, kernel=(3, 3), stride=(2, 2), clamp=(-20, 127),
            **drawn_parameters(rng, (6, 3, 3, 3)),
        ),
        Op("max_pool", "largest", (2,), 3, kernel=(3, 3), padding=(1, 1, 1, 1)),
        Op("average_pool", "average", (3,), 4, kernel=(2, 2), stride=(2, 2)),
        Op("reshape", "flat", (4,), 5),
        Op("fully_connected", "head", (5,), 6, **drawn_parameters(rng, (4, 24))),
    ]  # fmt: skip
    return model_of(tensors, ops, {"all": [1, 5]})


def window_network() -> Model:
    """A convolution along the time of a window of six channels, and a head."""
    rng = np.random.default_rng(0)
    tensors = [
        Tensor("window", 1, 20, 6, 0.04, 3),
        Tensor("steps", 1, 6, 5, 0.05, -128),
        Tensor("mean", 1, 1, 5, 0.04, -128),
        Tensor("classes", 1, 1, 3, 0.1, 0),
    ]
    layers = [drawn_parameters(rng, shape) for shape in ((5, 1, 5, 6), (3, 5))]
    ops = [
        Op("conv2d", "time", (0,), 1, kernel=(1, 5), stride=(1, 3), **layers[0]),
        Op("mean", "mean", (1,), 2),
        Op("fully_connected", "head", (2,), 3, **layers[1]),
    ]
    return model_of(tensors, ops, {"head": [2], "all": [0, 2]}, formula=(0.0, 1.0))


def convolution_before_mean(range_of_outputs: float = 2.0) -> Model:
    """The bundled network with its head as a 1x1 convolution before the mean."""
    graph = pmt.load("fashion_mnist_dscnn").to_graph()
    dense, mean = graph.ops[-1], graph.ops[-2]
    features = graph.tensors[mean.inputs[0]]
    logits = graph.tensors[dense.output]
    sides = {"height": features.height, "width": features.width}
    # Single positions have larger ones, and may be cut.
    logits = replace(logits, scale=range_of_outputs * logits.scale)
    graph.tensors[-2:] = [replace(logits, name="map", **sides), logits]
    weights = dense.weights.reshape(len(dense.weights), 1, 1, -1)
    graph.ops[-2:] = [
        replace(dense, kind="conv2d", inputs=mean.inputs, output=mean.output, weights=weights),
        replace(mean, inputs=(mean.output,), output=dense.output),
    ]
    count = len(graph.ops)
    graph.blocks = {"head": [count - 2]}
    return Model.from_graph(graph)
