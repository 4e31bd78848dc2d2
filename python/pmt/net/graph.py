"""Checks that a graph says one consistent thing before it becomes an image."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

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
]


@dataclass(frozen=True)
class Tensor:
    """One activation: shape without the batch, and its quantization.

    The real value is ``scale * (q - zero_point)`` for the int8 value ``q``.
    """

    name: str
    height: int
    width: int
    channels: int
    scale: float
    zero_point: int

    @property
    def elements(self) -> int:
        """Number of int8 values."""
        return self.height * self.width * self.channels


@dataclass
class Op:
    """One operation. Tensors are indices into :attr:`Graph.tensors`.

    ``weights`` are int8: ``(out, kernel_h, kernel_w, in)`` for ``conv2d``,
    ``(kernel_h, kernel_w, out)`` for ``depthwise_conv2d``, ``(out, in)`` for ``fully_connected``.
    ``bias`` is int32 ``(out,)`` with scale ``s_x * s_w``; ``weight_scales`` is float32 ``(out,)``.
    ``padding`` is top, left, bottom, right; ``clamp`` the bounds of the int8 output.
    """

    kind: OpKind
    name: str
    inputs: tuple[int, ...]
    output: int
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    clamp: tuple[int, int] = (-128, 127)
    weights: npt.NDArray[np.int8] | None = None
    bias: npt.NDArray[np.int32] | None = None
    weight_scales: npt.NDArray[np.float32] | None = None


@dataclass
class Graph:
    """A whole network: ops in execution order.

    ``blocks`` maps a block's name to the indices of its layers (ops with weights), ascending.
    ``input_mean`` and ``input_std`` are per channel, in units of a 0..255 pixel: the real input is
    ``(pixel - mean) / std``, the int8 input ``round_half_even(real / scale) + zero_point``.
    ``metadata`` is JSON-serializable: ``class_names``, ``source``, ``licence``, and what else a
    reader of the model wants to know.
    """

    tensors: list[Tensor]
    ops: list[Op]
    input: int
    output: int
    input_mean: tuple[float, ...]
    input_std: tuple[float, ...]
    blocks: dict[str, list[int]] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)


def graph_of_activations(tensors: list[Tensor], ops: list[Op]) -> Graph:
    """Return a network from its first tensor to its last, whose input is int8 and not pixels."""
    channels = min(tensors[0].channels, 4)
    return Graph(tensors, ops, 0, len(tensors) - 1, (0.0,) * channels, (1.0,) * channels)


_LAYER_KINDS = ("conv2d", "depthwise_conv2d", "fully_connected")
_POOL_KINDS = ("average_pool", "max_pool")
_WINDOW_KINDS = ("conv2d", "depthwise_conv2d", *_POOL_KINDS)
_WEIGHTLESS_KINDS = ("add", *_POOL_KINDS, "mean", "pad", "reshape")
_INT32_MAX = 2**31 - 1
_MAX_TERMS = 65535  # of 255 * 128 each


def is_layer(op: Op) -> bool:
    """Whether the op has weights, and so can be trained."""
    return op.kind in _LAYER_KINDS


def check_graph(graph: Graph) -> None:
    """Check a graph against the rules of the image format.

    Parameters
    ----------
    graph : Graph
        The graph to check; it is not changed.

    Raises
    ------
    ValueError
        At the first contradiction: shapes, dtypes, indices, order of ops, quantization. The
        message starts with the op, tensor or block it is about.
    """
    for index, tensor in enumerate(graph.tensors):
        _check_tensor(index, tensor)
    _check_input(graph)
    _check_order(graph)
    for op in graph.ops:
        _check_op(graph, op)
    _check_blocks(graph)


def _require(holds: bool, what: str, rule: str) -> None:
    if not holds:
        raise ValueError(f"{what}: {rule}")


def _check_tensor(index: int, tensor: Tensor) -> None:
    what = f"tensor {index} ({tensor.name!r})"
    shape = (tensor.height, tensor.width, tensor.channels)
    _require(all(size >= 1 for size in shape), what, f"shape {shape} must be positive")
    _require(tensor.elements <= _INT32_MAX, what, f"shape {shape} has more than 2^31 - 1 elements")
    _require(
        math.isfinite(tensor.scale) and float(np.float32(tensor.scale)) > 0,
        what,
        f"scale {tensor.scale!r} must be a positive finite float32",
    )
    _require(
        -128 <= tensor.zero_point <= 127,
        what,
        f"zero point {tensor.zero_point} must be in [-128, 127]",
    )


def _check_input(graph: Graph) -> None:
    count = len(graph.tensors)
    for role, index in (("input", graph.input), ("output", graph.output)):
        _require(0 <= index < count, role, f"tensor index {index} is not in [0, {count})")
    channels = graph.tensors[graph.input].channels
    for role, values in (("input_mean", graph.input_mean), ("input_std", graph.input_std)):
        _require(
            len(values) == min(channels, 4),
            role,
            f"{len(values)} values for {channels} input channels (one a channel, four at most)",
        )
        _require(all(math.isfinite(v) for v in values), role, f"{values} must be finite")
    _require(
        all(v != 0 for v in graph.input_std), "input_std", f"{graph.input_std} must not be zero"
    )


def _check_order(graph: Graph) -> None:
    known = {graph.input}
    names: set[str] = set()
    for op in graph.ops:
        what = f"op {op.name!r} ({op.kind})"
        _require(op.name not in names, what, "the name is taken by an earlier op")
        names.add(op.name)
        _require(
            len(op.inputs) == (2 if op.kind == "add" else 1),
            what,
            f"{len(op.inputs)} inputs; an add takes two, every other op one",
        )
        for index in op.inputs:
            _require(index in known, what, f"reads tensor {index} before an op has written it")
        _require(
            0 <= op.output < len(graph.tensors), what, f"output tensor {op.output} does not exist"
        )
        _require(op.output not in known, what, f"tensor {op.output} is written a second time")
        known.add(op.output)
    _require(graph.output in known, "output", f"no op writes tensor {graph.output}")


def _check_op(graph: Graph, op: Op) -> None:
    what = f"op {op.name!r} ({op.kind})"
    _require(op.kind in _LAYER_KINDS or op.kind in _WEIGHTLESS_KINDS, what, "unknown kind of op")
    low, high = op.clamp
    _require(-128 <= low <= high <= 127, what, f"clamp {op.clamp} must be ordered, in [-128, 127]")
    _require(
        min(*op.kernel, *op.stride) >= 1,
        what,
        f"kernel {op.kernel} and stride {op.stride} must be positive",
    )
    _require(min(op.padding) >= 0, what, f"padding {op.padding} must not be negative")
    source = graph.tensors[op.inputs[0]]
    target = graph.tensors[op.output]
    if op.kind in _WINDOW_KINDS:
        _check_window(what, op)
    else:
        _check_no_window(what, op)
    if is_layer(op):
        _check_parameters(what, op, source, target)
    else:
        _require(
            op.weights is None and op.bias is None and op.weight_scales is None,
            what,
            "only layers (convolutions, fully connected) have weights, bias and weight scales",
        )
    _require(
        _shape(target) == _EXPECTED_SHAPE[op.kind](op, source, target),
        what,
        f"output shape {_shape(target)} does not follow from input shape {_shape(source)}, "
        f"which gives {_EXPECTED_SHAPE[op.kind](op, source, target)}",
    )
    if op.kind == "add":
        second = graph.tensors[op.inputs[1]]
        _require(
            _shape(second) == _shape(source), what, f"adds {_shape(source)} and {_shape(second)}"
        )
    if op.kind in (*_POOL_KINDS, "pad", "reshape"):
        _require(
            np.float32(source.scale) == np.float32(target.scale)
            and source.zero_point == target.zero_point,
            what,
            f"input quantization ({source.scale}, {source.zero_point}) must equal the output's "
            f"({target.scale}, {target.zero_point})",
        )


def _check_window(what: str, op: Op) -> None:
    top, left, bottom, right = op.padding
    _require(
        max(*op.kernel, *op.stride) <= 255,
        what,
        f"kernel {op.kernel} and stride {op.stride} must be at most 255",
    )
    _require(
        max(top, bottom) < op.kernel[0] and max(left, right) < op.kernel[1],
        what,
        f"padding {op.padding} must be smaller than the kernel {op.kernel}",
    )


def _check_no_window(what: str, op: Op) -> None:
    _require(
        op.kernel == (1, 1) and op.stride == (1, 1),
        what,
        f"kernel {op.kernel} and stride {op.stride} must be (1, 1), the op has no window",
    )
    _require(
        op.kind == "pad" or not any(op.padding),
        what,
        f"padding {op.padding} must be zero, the op pads nothing",
    )


def _check_parameters(what: str, op: Op, source: Tensor, target: Tensor) -> None:
    expected: tuple[int, ...]
    if op.kind == "conv2d":
        expected = (target.channels, *op.kernel, source.channels)
    elif op.kind == "depthwise_conv2d":
        _require(
            target.channels % source.channels == 0,
            what,
            f"{target.channels} output channels are no multiple of {source.channels}",
        )
        expected = (*op.kernel, target.channels)
    else:
        expected = (target.channels, source.elements)
    terms = math.prod(expected) // target.channels if op.kind != "depthwise_conv2d" else 1
    _require(
        terms <= _MAX_TERMS, what, f"sums {terms} products, int32 is sure to hold {_MAX_TERMS}"
    )
    for name, array, dtype, shape in (
        ("weights", op.weights, np.int8, expected),
        ("bias", op.bias, np.int32, (target.channels,)),
        ("weight_scales", op.weight_scales, np.float32, (target.channels,)),
    ):
        if array is None and name == "bias":
            continue  # the image gets zeros
        if array is None:
            raise ValueError(f"{what}: {name} are missing")
        _require(array.dtype == dtype, what, f"{name} are {array.dtype}, not {np.dtype(dtype)}")
        _require(array.shape == shape, what, f"{name} have shape {array.shape}, not {shape}")
    scales = op.weight_scales
    assert scales is not None
    _require(
        bool(np.all(np.isfinite(scales) & (scales > 0))),
        what,
        "weight_scales must be positive and finite",
    )


def _check_blocks(graph: Graph) -> None:
    for name, layers in graph.blocks.items():
        what = f"block {name!r}"
        _require(len(layers) > 0, what, "has no layers")
        _require(
            all(0 <= i < len(graph.ops) and is_layer(graph.ops[i]) for i in layers),
            what,
            f"{layers} must be indices of ops with weights",
        )
        _require(
            all(a < b for a, b in itertools.pairwise(layers)),
            what,
            f"{layers} must ascend",
        )


def _shape(tensor: Tensor) -> tuple[int, int, int]:
    return (tensor.height, tensor.width, tensor.channels)


def _window_size(op: Op, source: Tensor) -> tuple[int, int]:
    top, left, bottom, right = op.padding
    return (
        (source.height + top + bottom - op.kernel[0]) // op.stride[0] + 1,
        (source.width + left + right - op.kernel[1]) // op.stride[1] + 1,
    )


def _reshaped(op: Op, source: Tensor, target: Tensor) -> tuple[int, int, int]:
    return _shape(target) if target.elements == source.elements else _shape(source)


def _padded(op: Op, source: Tensor, target: Tensor) -> tuple[int, int, int]:
    top, left, bottom, right = op.padding
    return (source.height + top + bottom, source.width + left + right, source.channels)


_EXPECTED_SHAPE: dict[str, Callable[[Op, Tensor, Tensor], tuple[int, int, int]]] = {
    "conv2d": lambda op, source, target: (*_window_size(op, source), target.channels),
    "depthwise_conv2d": lambda op, source, target: (*_window_size(op, source), target.channels),
    "fully_connected": lambda op, source, target: (1, 1, target.channels),
    "add": lambda op, source, target: _shape(source),
    "average_pool": lambda op, source, target: (*_window_size(op, source), source.channels),
    "max_pool": lambda op, source, target: (*_window_size(op, source), source.channels),
    "mean": lambda op, source, target: (1, 1, source.channels),
    "pad": _padded,
    "reshape": _reshaped,
}
