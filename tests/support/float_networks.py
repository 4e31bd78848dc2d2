"""Float networks for the tests of the quantizer."""

from __future__ import annotations

import numpy as np

from pmt.quantization import FloatGraph, FloatOp, FloatTensor

Shape = tuple[int, int, int]


def graph_of(shape: Shape, *steps: tuple[FloatOp, Shape]) -> FloatGraph:
    """A network with pixels / 255 as input; op i reads what it names and writes tensor i + 1."""
    tensors = [FloatTensor("image", *shape)]
    for index, (op, output) in enumerate(steps):
        op.output = index + 1
        tensors.append(FloatTensor(op.name, *output))
    ops = [op for op, _ in steps]
    channels = shape[2]
    return FloatGraph(tensors, ops, 0, len(ops), (0.0,) * channels, (255.0,) * channels)


def mobile_network(
    seed: int, activation: str = "relu", *, uneven: float = 1.0, size: int = 6, classes: int = 4
) -> FloatGraph:
    """Convolution, an inverted residual with its addition, pad, convolution, mean and a head.

    ``uneven`` above 1 spreads the size of channels by factors up to that, which ReLU lets pass
    and the next layer undoes: as badly ranged as networks that were trained without quantization
    in mind.
    """
    r = np.random.default_rng(seed)

    def normal(*shape: int, fan_in: int) -> np.ndarray:
        return (r.normal(0, 1, shape) / np.sqrt(fan_in)).astype(np.float32)

    def bias(channels: int) -> np.ndarray:
        return r.normal(0.1, 0.2, channels).astype(np.float32)

    same = {"kernel": (3, 3), "padding": (1, 1, 1, 1)}
    wide = (size, size, 12)
    slim = (size, size, 5)
    graph = graph_of(
        (size, size, 3),
        (
            FloatOp("conv2d", "stem", (0,), 0, weights=normal(5, 3, 3, 3, fan_in=9), **same),
            slim,
        ),
        (FloatOp("conv2d", "expand", (1,), 0, weights=normal(12, 1, 1, 5, fan_in=2)), wide),
        (
            FloatOp(
                "depthwise_conv2d", "depth", (2,), 0, weights=normal(3, 3, 12, fan_in=4), **same
            ),
            wide,
        ),
        (FloatOp("conv2d", "project", (3,), 0, weights=normal(5, 1, 1, 12, fan_in=6)), slim),
        (FloatOp("add", "add", (1, 4), 0), slim),
        (FloatOp("conv2d", "mix", (5,), 0, weights=normal(8, 1, 1, 5, fan_in=3)), (size, size, 8)),
        (FloatOp("pad", "pad", (6,), 0, padding=(1, 0, 0, 1)), (size + 1, size + 1, 8)),
        (
            FloatOp(
                "depthwise_conv2d",
                "multiply",
                (7,),
                0,
                kernel=(2, 2),
                weights=normal(2, 2, 16, fan_in=2),
            ),
            (size, size, 16),
        ),
        (
            FloatOp("max_pool", "pool", (8,), 0, kernel=(2, 2), stride=(2, 2)),
            (size // 2, size // 2, 16),
        ),
        (FloatOp("reshape", "flatten", (9,), 0), (1, 1, size * size * 4)),
        (
            FloatOp(
                "fully_connected", "head", (10,), 0, weights=normal(4, size * size * 4, fan_in=9)
            ),
            (1, 1, classes),
        ),
    )
    for op in graph.ops:
        if op.weights is None:
            continue
        op.bias = bias(graph.tensors[op.output].channels)
        if op.name in ("expand", "depth", "mix", "multiply"):
            op.activation = activation
    if uneven > 1.0:
        _spread(graph, r, uneven)
    return graph


def _spread(graph: FloatGraph, r: np.random.Generator, uneven: float) -> None:
    by_name = {op.name: op for op in graph.ops}
    expand, depth, project = (by_name[name] for name in ("expand", "depth", "project"))
    for first, second in ((expand, depth), (depth, project)):
        factors = np.exp(r.uniform(0, np.log(uneven), 12)).astype(np.float32)
        axis = (1, 1, -1) if first.kind == "depthwise_conv2d" else (-1, 1, 1, 1)
        first.weights = first.weights * factors.reshape(axis)
        first.bias = first.bias * factors
        second.weights = second.weights / factors


def random_images(seed: int, count: int, graph: FloatGraph) -> np.ndarray:
    """Random uint8 pixels of the network's input shape."""
    shape = (count, *graph.tensors[graph.input].shape)
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
