"""The kinds of ops: shape, quantization and, without weights, the arithmetic in floating point.

An op is added here, as a definition of ``cpp/core/ops``, and in the tables of the formats.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from typing import Any, Literal

import numpy as np

from pmt._util.arrays import Array

# In the order of the image format, which counts them from 1.
OpKind = Literal[
    "conv2d",
    "depthwise_conv2d",
    "fully_connected",
    "add",
    "average_pool",
    "max_pool",
    "mean",
    "pad",
    "reshape",
    "concatenation",
]
Shape = tuple[int, int, int]  # height, width, channels
Pair = tuple[int, int]  # rows, columns
Padding = tuple[int, int, int, int]  # top, left, bottom, right


@dataclass
class BaseOp:
    """The fields of float and int8 ops: indices of tensors; padding is top, left, bottom, right."""

    kind: OpKind
    name: str
    inputs: tuple[int, ...]
    output: int
    kernel: Pair = (1, 1)
    stride: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)

    def base_fields(self) -> dict[str, Any]:
        """Return these fields by name, for an op of another number format."""
        return {shared.name: getattr(self, shared.name) for shared in fields(BaseOp)}


@dataclass(frozen=True)
class OpDefinition:
    """The rules of one kind of op."""

    # Height, width and channels of the output, from an op, its inputs' and its output's as it is:
    # the channels of a layer are those of its weights.
    shape: Callable[[BaseOp, Sequence[Shape], Shape], Shape]
    # The output, (N, H, W, C) of float32, without activation; None for layers, which need weights.
    forward: Callable[[BaseOp, Sequence[Array]], Array] | None = None
    inputs: int = 1
    has_window: bool = False
    keeps_quantization: bool = False  # input and output share a scale and a zero point
    activated: bool = False  # a float op has an activation, which becomes the clamp of the int8 op
    clamps: bool = True  # an int8 op has a clamp
    moves: bool = False  # each output is one of the inputs, in a float network
    by_channel: bool = False  # a positive factor for each channel passes through unchanged
    joins: bool = False  # an input without a scale of its own can have the output's


def padded_size(size: Sequence[int], padding: Padding) -> Pair:
    """Return a height and width with the rows and columns of a padding."""
    top, left, bottom, right = padding
    return size[0] + top + bottom, size[1] + left + right


def output_size(size: Sequence[int], kernel: Pair, stride: Pair, padding: Padding) -> Pair:
    """Return the height and width that windows over an input of a height and width give."""
    height, width = padded_size(size, padding)
    return (height - kernel[0]) // stride[0] + 1, (width - kernel[1]) // stride[1] + 1


def pad(x: Array, padding: Padding, fill: float) -> Array:
    """Add rows and columns at top, left, bottom, right."""
    if not any(padding):
        return x
    top, left, bottom, right = padding
    return np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)


def taps(x: Array, op: BaseOp, fill: float) -> Iterator[tuple[int, int, Array]]:
    """Row and column of each kernel tap, and its inputs: a view of shape (N, OH, OW, C)."""
    padded, (down, right) = pad(x, op.padding, fill), op.stride
    rows = padded.shape[1] - op.kernel[0] + 1
    columns = padded.shape[2] - op.kernel[1] + 1
    for row in range(op.kernel[0]):
        for column in range(op.kernel[1]):
            window = padded[:, row : row + rows : down, column : column + columns : right]
            yield row, column, window


def _window_size(op: BaseOp, source: Shape) -> Pair:
    return output_size(source, op.kernel, op.stride, op.padding)


def _average(x: Array, op: BaseOp) -> Array:
    """Sum of the pixels in each window, by their count: padding is not counted."""
    inside = np.ones((1, *x.shape[1:3], 1), x.dtype)
    total = sum(tap for _, _, tap in taps(x, op, 0))
    count = sum(tap for _, _, tap in taps(inside, op, 0))
    return np.asarray(total / count)


def _maximum(x: Array, op: BaseOp) -> Array:
    """Greatest pixel of each window; padding never wins."""
    return np.asarray(reduce(np.maximum, (tap for _, _, tap in taps(x, op, -np.inf))))


def _mean(x: Array) -> Array:
    return np.asarray(x.mean(axis=(1, 2), keepdims=True, dtype=np.float32))


def _reshaped(_: BaseOp, sources: Sequence[Shape], target: Shape) -> Shape:
    return target if math.prod(target) == math.prod(sources[0]) else sources[0]


def _joined(_: BaseOp, sources: Sequence[Shape], target: Shape) -> Shape:
    return (*sources[0][:2], sum(source[2] for source in sources))


_CONVOLUTION = OpDefinition(
    lambda op, sources, target: (*_window_size(op, sources[0]), target[2]),
    has_window=True,
    activated=True,
)
_POOL: dict[str, Any] = {
    "shape": lambda op, sources, target: (*_window_size(op, sources[0]), sources[0][2]),
    "has_window": True,
    "keeps_quantization": True,
    "by_channel": True,
}
DEFINITIONS: dict[OpKind, OpDefinition] = {
    "conv2d": _CONVOLUTION,
    "depthwise_conv2d": _CONVOLUTION,
    "fully_connected": OpDefinition(lambda op, sources, target: (1, 1, target[2]), activated=True),
    "add": OpDefinition(
        lambda op, sources, target: sources[0],
        lambda op, sources: sources[0] + sources[1],
        inputs=2,
        activated=True,
    ),
    "average_pool": OpDefinition(forward=lambda op, sources: _average(sources[0], op), **_POOL),
    "max_pool": OpDefinition(
        forward=lambda op, sources: _maximum(sources[0], op), moves=True, **_POOL
    ),
    "mean": OpDefinition(
        lambda op, sources, target: (1, 1, sources[0][2]),
        lambda op, sources: _mean(sources[0]),
        by_channel=True,
    ),
    "pad": OpDefinition(
        lambda op, sources, target: (*padded_size(sources[0], op.padding), sources[0][2]),
        lambda op, sources: pad(sources[0], op.padding, 0.0),
        keeps_quantization=True,
        clamps=False,
        moves=True,
        by_channel=True,
    ),
    "reshape": OpDefinition(
        _reshaped, lambda op, sources: sources[0], keeps_quantization=True, clamps=False, moves=True
    ),
    "concatenation": OpDefinition(
        _joined,
        lambda op, sources: np.concatenate(sources, axis=3),
        inputs=2,
        activated=True,
        joins=True,
    ),
}


def _kinds(rule: Callable[[OpDefinition], bool]) -> tuple[OpKind, ...]:
    return tuple(kind for kind, definition in DEFINITIONS.items() if rule(definition))


LAYER_KINDS = _kinds(lambda definition: definition.forward is None)
# Input and output share one quantization.
KEEPING_KINDS = _kinds(lambda definition: definition.keeps_quantization)
# An activation fused into an op that keeps its input's quantization has no clamp to become.
ACTIVATED_KINDS = _kinds(lambda definition: definition.activated)
CLAMPING_KINDS = _kinds(lambda definition: definition.clamps)
MOVING_KINDS = _kinds(lambda definition: definition.moves)
SCALABLE_KINDS = _kinds(lambda definition: definition.by_channel)
JOINING_KINDS = _kinds(lambda definition: definition.joins)
