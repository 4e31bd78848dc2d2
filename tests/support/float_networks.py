"""Float networks for the tests of the quantizer."""

from typing import Any

import numpy as np

from pmt.net.graph import channel_axis
from pmt.net.ops import DEFINITIONS
from pmt.quantization import FloatGraph, FloatOp, FloatTensor

Shape = tuple[int, int, int]


def graph_of(shape: Shape, *ops: FloatOp, flat: Shape = (0, 0, 0)) -> FloatGraph:
    """A network with pixels / 255 as input; op i reads what it names and writes tensor i + 1.

    ``flat`` is the shape after a reshape.
    """
    tensors = [FloatTensor("image", *shape)]
    for op in ops:
        op.output = len(tensors)
        out = flat if op.weights is None else (0, 0, op.weights.shape[channel_axis(op.kind)])
        sources = [tensors[index].shape for index in op.inputs]
        tensors.append(FloatTensor(op.name, *DEFINITIONS[op.kind].shape(op, sources, out)))
    channels = shape[2]
    return FloatGraph(tensors, [*ops], 0, len(ops), (0.0,) * channels, (255.0,) * channels)


def mobile_network(seed: int, activation: str = "relu", *, uneven: float = 1.0) -> FloatGraph:
    """Convolution, an inverted residual with its addition, pad, convolution, mean and a head.

    ``uneven`` above 1 spreads the size of channels by factors up to that, which ReLU lets pass
    and the next layer undoes: as badly ranged as networks that were trained without quantization
    in mind.
    """
    r = np.random.default_rng(seed)

    def layer(
        kind: str, name: str, source: int, *shape: int, fan_in: int, **window: object
    ) -> FloatOp:
        weights = (r.normal(0, 1, shape) / np.sqrt(fan_in)).astype(np.float32)
        return FloatOp(kind, name, (source,), 0, weights=weights, **window)

    same = {"kernel": (3, 3), "padding": (1, 1, 1, 1)}
    graph = graph_of(
        (6, 6, 3),
        layer("conv2d", "stem", 0, 5, 3, 3, 3, fan_in=9, **same),
        layer("conv2d", "expand", 1, 12, 1, 1, 5, fan_in=2),
        layer("depthwise_conv2d", "depth", 2, 3, 3, 12, fan_in=4, **same),
        layer("conv2d", "project", 3, 5, 1, 1, 12, fan_in=6),
        FloatOp("add", "add", (1, 4), 0),
        layer("conv2d", "mix", 5, 8, 1, 1, 5, fan_in=3),
        FloatOp("pad", "pad", (6,), 0, padding=(1, 0, 0, 1)),
        layer("depthwise_conv2d", "multiply", 7, 2, 2, 16, fan_in=2, kernel=(2, 2)),
        FloatOp("max_pool", "pool", (8,), 0, kernel=(2, 2), stride=(2, 2)),
        FloatOp("reshape", "flatten", (9,), 0),
        layer("fully_connected", "head", 10, 4, 144, fan_in=9),
        flat=(1, 1, 144),
    )
    for op in graph.ops:
        if op.weights is None:
            continue
        op.bias = r.normal(0.1, 0.2, graph.tensors[op.output].channels).astype(np.float32)
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


def check_close(found: np.ndarray, expected: Any) -> None:
    """Check that the error of int8 has at most a thousandth of the logits' power."""
    expected = np.asarray(expected)
    assert np.mean((found - expected) ** 2) < np.mean((expected - expected.mean()) ** 2) / 1000
