"""Small networks for tests, built as graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from pmt.datasets import Dataset
from pmt.model import Model
from pmt.net.graph import Graph, Op, Tensor


def drawn_parameters(rng: np.random.Generator, shape: tuple[int, ...], out: int) -> dict[str, Any]:
    """Weights, biases and scales of a layer that keep its outputs inside int8."""
    return {
        "weights": rng.integers(-90, 91, shape).astype(np.int8),
        "bias": rng.integers(-900, 900, out).astype(np.int32),
        "weight_scales": rng.uniform(0.002, 0.006, out).astype(np.float32),
    }


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
    ops = [
        Op(
            "conv2d",
            "conv",
            (0,),
            1,
            kernel=(3, 3),
            padding=(1, 1, 1, 1),
            weights=rng.integers(-40, 41, (hidden, 3, 3, channels)).astype(np.int8),
            bias=rng.integers(-500, 500, hidden).astype(np.int32),
            weight_scales=rng.uniform(0.002, 0.004, hidden).astype(np.float32),
        ),
        Op(
            "fully_connected",
            "head",
            (1,),
            2,
            weights=rng.integers(-60, 61, (classes, size * size * hidden)).astype(np.int8),
            bias=rng.integers(-50, 50, classes).astype(np.int32),
            weight_scales=np.full(classes, 0.0008, np.float32),
        ),
    ]
    blocks = {"B1": [0], "head": [1], "all": [0, 1]}
    return Model.from_graph(
        Graph(
            tensors, ops, 0, 2, (128.0,) * channels, (128.0,) * channels, blocks, {"name": "smooth"}
        )
    )


def residual_network(*, size: int = 8, width: int = 8, classes: int = 4, seed: int = 0) -> Model:
    """A conv2d, an inverted residual block with its addition, a strided block, a mean, a head."""
    rng = np.random.default_rng(seed)
    half = size // 2
    tensors = [
        Tensor("input", size, size, 3, 1 / 128, 0),
        Tensor("stem", size, size, width, 0.02, -128),
        Tensor("expand", size, size, 2 * width, 0.02, -128),
        Tensor("depth", size, size, 2 * width, 0.02, -128),
        Tensor("project", size, size, width, 0.04, 4),
        Tensor("sum", size, size, width, 0.05, -9),
        Tensor("down", half, half, width, 0.03, -128),
        Tensor("pooled", 1, 1, width, 0.02, -100),
        Tensor("logits", 1, 1, classes, 0.1, 0),
    ]

    def layer(kind: str, name: str, source: int, to: int, weights: tuple[int, ...], **more) -> Op:
        parameters = drawn_parameters(rng, weights, tensors[to].channels)
        return Op(kind, name, (source,), to, **parameters, **more)

    same = {"kernel": (3, 3), "padding": (1, 1, 1, 1)}
    ops = [
        layer("conv2d", "stem", 0, 1, (width, 3, 3, 3), **same),
        layer("conv2d", "expand", 1, 2, (2 * width, 1, 1, width)),
        layer("depthwise_conv2d", "depth", 2, 3, (3, 3, 2 * width), **same),
        layer("conv2d", "project", 3, 4, (width, 1, 1, 2 * width)),
        Op("add", "sum", (1, 4), 5),
        layer(
            "conv2d",
            "down",
            5,
            6,
            (width, 3, 3, width),
            kernel=(3, 3),
            stride=(2, 2),
            padding=(0, 0, 1, 1),
        ),
        Op("mean", "pooled", (6,), 7),
        layer("fully_connected", "head", 7, 8, (classes, width)),
    ]
    blocks = {"B1": [0, 1], "B2": [2, 3], "B3": [5], "head": [7], "all": [0, 1, 2, 3, 5, 7]}
    return Model.from_graph(
        Graph(tensors, ops, 0, 8, (128.0,) * 3, (128.0,) * 3, blocks, {"name": "residual"})
    )


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

    def layer(kind: str, name: str, source: int, to: int, shape: tuple[int, ...], **more) -> Op:
        out = tensors[to].channels
        weights = np.ones(shape, np.int8)
        scales = np.full(out, 0.01, np.float32)
        bias = np.zeros(out, np.int32)
        return Op(
            kind, name, (source,), to, weights=weights, bias=bias, weight_scales=scales, **more
        )

    same = {"kernel": (3, 3), "padding": (1, 1, 1, 1)}
    ops = [
        layer("conv2d", "conv", 0, 1, (8, 3, 3, 2), **same),
        layer("depthwise_conv2d", "depth", 1, 2, (3, 3, 8), **same),
        Op("mean", "pool", (2,), 3),
        layer("fully_connected", "head", 3, 4, (4, 8)),
    ]
    blocks = {"head": [3], "all": [0, 1, 3]}
    return Model.from_graph(Graph(tensors, ops, 0, 4, (128.0,) * 2, (128.0,) * 2, blocks))


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
            **drawn_parameters(rng, (6, 3, 3, 3), 6),
        ),
        Op("max_pool", "largest", (2,), 3, kernel=(3, 3), padding=(1, 1, 1, 1)),
        Op("average_pool", "average", (3,), 4, kernel=(2, 2), stride=(2, 2)),
        Op("reshape", "flat", (4,), 5),
        Op("fully_connected", "head", (5,), 6, **drawn_parameters(rng, (4, 24), 4)),
    ]  # fmt: skip
    blocks = {"all": [1, 5]}
    return Model.from_graph(Graph(tensors, ops, 0, 6, (128.0,) * 3, (128.0,) * 3, blocks))


def window_network() -> Model:
    """A convolution along the time of a window of six channels, and a head."""
    rng = np.random.default_rng(0)
    tensors = [
        Tensor("window", 1, 20, 6, 0.04, 3),
        Tensor("steps", 1, 6, 5, 0.05, -128),
        Tensor("mean", 1, 1, 5, 0.04, -128),
        Tensor("classes", 1, 1, 3, 0.1, 0),
    ]
    layers = [drawn_parameters(rng, shape, shape[0]) for shape in ((5, 1, 5, 6), (3, 5))]
    window = {"kernel": (1, 5), "stride": (1, 3)}
    ops = [
        Op("conv2d", "time", (0,), 1, **window, **layers[0]),
        Op("mean", "mean", (1,), 2),
        Op("fully_connected", "head", (2,), 3, **layers[1]),
    ]
    blocks = {"head": [2], "all": [0, 2]}
    return Model.from_graph(Graph(tensors, ops, 0, 3, (0.0,) * 4, (1.0,) * 4, blocks, {}))
