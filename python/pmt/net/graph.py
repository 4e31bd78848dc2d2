"""An int8 network as Python data, a new last layer for it, and checks that it is consistent."""

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from pmt._core import MOST_CHANNELS
from pmt._util.arrays import FloatArray, Int8Array, Int32Array
from pmt._util.checks import check_type, checked_integer, kind_of
from pmt.errors import OptionError
from pmt.net.input_stage import InputStage, check_stage
from pmt.net.ops import DEFINITIONS, LAYER_KINDS, BaseOp, OpKind, Pair, Shape

# In the metadata of a network whose output is features and no logit for each class.
FEATURES_ENTRY = {"output": "features"}
# In that of a network that was quantized on inputs that are not pixels.
FEATURE_INPUTS = {"input": "features"}
# Entries that only a network of classes has.
OF_CLASSES = ("class_names",)
# Its entry with statistics of layers on clean images.
STATISTICS_KEY = "channel_statistics"
SEEN_IMAGES = "seen_images"  # ranges of those that the network was trained on
_INT32_MAX = 2**31 - 1
_MAX_TERMS = 65535  # of 255 * 128 each


@dataclass(frozen=True)
class BaseTensor:
    """One activation: its name and its shape without the batch."""

    name: str
    height: int
    width: int
    channels: int

    @property
    def shape(self) -> Shape:
        """Height, width, channels."""
        return (self.height, self.width, self.channels)

    @property
    def elements(self) -> int:
        """Number of values."""
        return self.height * self.width * self.channels


@dataclass(frozen=True)
class Tensor(BaseTensor):
    """One activation and its quantization.

    The real value is ``scale * (q - zero_point)`` for the int8 value ``q``.
    """

    scale: float
    zero_point: int

    def is_quantized_as(self, scale: float, zero_point: int) -> bool:
        """Whether a scale, as a float32, and a zero point are this activation's."""
        same_scale = bool(np.float32(self.scale) == np.float32(scale))
        return same_scale and self.zero_point == zero_point


@dataclass
class Op(BaseOp):
    """One operation. Tensors are indices into ``Graph.tensors``.

    ``weights`` are int8: ``(out, kernel_h, kernel_w, in)`` for ``conv2d``,
    ``(kernel_h, kernel_w, out)`` for ``depthwise_conv2d``, ``(out, in)`` for ``fully_connected``.
    ``bias`` is int32 ``(out,)`` with scale ``s_x * s_w``; ``weight_scales`` is float32 ``(out,)``.
    ``padding`` is top, left, bottom, right; ``clamp`` the bounds of the int8 output.
    """

    clamp: Pair = (-128, 127)
    weights: Int8Array | None = None
    bias: Int32Array | None = None
    weight_scales: FloatArray | None = None


Requirement = Callable[[bool, str], None]
TensorType = TypeVar("TensorType", bound=BaseTensor)
OpType = TypeVar("OpType", bound=BaseOp)


@dataclass
class BaseGraph(Generic[TensorType, OpType]):
    """The fields that a float graph and an int8 graph share; ops are in execution order."""

    tensors: list[TensorType]
    ops: list[OpType]
    input: int
    output: int
    input_mean: tuple[float, ...]
    input_std: tuple[float, ...]
    blocks: dict[str, list[int]] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class Graph(BaseGraph[Tensor, Op]):
    """A whole network: ops in execution order.

    ``blocks`` maps a block's name to the indices of its layers (ops with weights), ascending.
    ``input_mean`` and ``input_std`` are per channel, in units of a 0..255 pixel: the real input is
    ``(pixel - mean) / std``, the int8 input ``round_half_even(real / scale) + zero_point``;
    ``pixels_assumed`` says that an importer could only guess them. An image does not keep that.
    ``stage`` is what images pass before that, where the network has an input stage.
    ``metadata`` is JSON-serializable: ``class_names``, ``source``, ``licence``, and what else a
    reader of the model wants to know.
    """

    pixels_assumed: bool = False
    stage: InputStage | None = None


def ends_in_features(shape: Shape, metadata: Mapping[str, Any]) -> bool:
    """Whether an output is features: it says so, or has several positions."""
    height, width, _ = shape
    return height * width > 1 or FEATURES_ENTRY.items() <= metadata.items()


def graph_of_activations(tensors: list[Tensor], ops: list[Op]) -> Graph:
    """Return a network from its first tensor to its last, whose input is int8 and not pixels."""
    channels = min(tensors[0].channels, 4)
    return Graph(tensors, ops, 0, len(tensors) - 1, (0.0,) * channels, (1.0,) * channels)


def is_layer(op: BaseOp) -> bool:
    """Whether the op has weights, and so can be trained."""
    return op.kind in LAYER_KINDS


def channel_axis(kind: OpKind) -> int:
    """Return the axis of a layer's weights that runs over its output channels."""
    return 2 if kind == "depthwise_conv2d" else 0


def channel_shape(op: BaseOp, rank: int) -> tuple[int, ...]:
    """Return the shape in which a vector over output channels is broadcast to the weights."""
    return (-1,) if op.kind == "depthwise_conv2d" else (-1, *[1] * (rank - 1))


def weight_shape(op: BaseOp, source: BaseTensor, channels: int) -> tuple[int, ...]:
    """Return the shape that a layer's weights must have."""
    if op.kind == "conv2d":
        return (channels, *op.kernel, source.channels)
    if op.kind == "depthwise_conv2d":
        return (*op.kernel, channels)
    return (channels, source.elements)


def with_new_head(graph: Graph, classes: int) -> Graph:
    """Return a network with a new last layer, whose logits are all 0 until it is trained.

    Its weights and biases are 0. Every weight scale is the median of the old layer's, so that the
    int8 range covers weights as large as the old ones. It has no activation, and an output that was
    never negative gets both signs. The other layers, the blocks and the statistics of clean images
    stay; class names do not.

    Parameters
    ----------
    graph : Graph
        The network; it does not change.
    classes : int
        Number of classes, or 1 for one output: a number, or two classes by its sign.

    Returns
    -------
    Graph
        The network with the new layer. Arrays of the other layers are shared.

    Raises
    ------
    TypeError
        If ``graph`` is no graph, or ``classes`` is not an integer.
    ValueError
        If ``classes`` is out of range, or the network does not end in a layer that gives a logit
        for each class.
    """
    check_is_graph(graph)
    count = checked_integer("classes", classes)
    if not 1 <= count <= MOST_CHANNELS:
        raise OptionError("classes", f" {count}: must be 1..{MOST_CHANNELS}")
    head, output = graph.ops[-1], graph.tensors[graph.output]
    gives_logits = head.kind in LAYER_KINDS and head.kind != "depthwise_conv2d"
    if not gives_logits or ends_in_features(output.shape, graph.metadata):
        raise OptionError(
            "classes",
            f" {count}: the network does not end in a layer that gives a logit for each class, "
            f"but in {head.kind} {head.name!r}; its last layer cannot be replaced",
        )
    assert head.weights is not None
    assert head.weight_scales is not None
    scale = np.float32(np.median(head.weight_scales))
    new = replace(
        head,
        weights=np.zeros((count, *head.weights.shape[1:]), np.int8),
        bias=np.zeros(count, np.int32),
        weight_scales=np.full(count, scale, np.float32),
        clamp=(-128, 127),
    )
    if output.zero_point == -128:
        output = replace(output, scale=2 * output.scale, zero_point=0)
    tensors = list(graph.tensors)
    tensors[graph.output] = replace(output, channels=count)
    metadata = {k: v for k, v in graph.metadata.items() if k not in OF_CLASSES}
    return replace(graph, tensors=tensors, ops=[*graph.ops[:-1], new], metadata=metadata)


def check_graph(graph: Graph) -> None:
    """Check a graph against the rules of the image format.

    Parameters
    ----------
    graph : Graph
        The graph to check; it is not changed.

    Raises
    ------
    TypeError
        If it is no graph, or a field is of another type.
    ValueError
        At the first contradiction: shapes, dtypes, indices, order of ops, quantization. The
        message starts with the op, tensor or block it is about.
    """
    check_is_graph(graph)
    check_types(graph, Tensor, Op)
    for index, tensor in enumerate(graph.tensors):
        _check_tensor(index, tensor)
    _check_input(graph)
    if graph.stage is not None:
        check_stage(graph.stage, graph.tensors[graph.input].channels)
    _check_order(graph)
    for op in graph.ops:
        _check_op(graph, op)
    _check_blocks(graph)


def _require(what: str, holds: bool, rule: str) -> None:
    if not holds:
        raise ValueError(f"{what}: {rule}")


def _check_tensor(index: int, tensor: Tensor) -> None:
    require = partial(_require, f"tensor {index} ({tensor.name!r})")
    require(min(tensor.shape) >= 1, f"shape {tensor.shape} must be positive")
    require(tensor.elements <= _INT32_MAX, f"shape {tensor.shape} has more than 2^31 - 1 elements")
    require(
        math.isfinite(tensor.scale) and float(np.float32(tensor.scale)) > 0,
        f"scale {tensor.scale!r} must be a positive finite float32",
    )
    require(
        -128 <= tensor.zero_point <= 127, f"zero point {tensor.zero_point} must be in [-128, 127]"
    )


def _check_input(graph: Graph) -> None:
    count = len(graph.tensors)
    for role, index in (("input", graph.input), ("output", graph.output)):
        _require(role, 0 <= index < count, f"tensor index {index} is not in [0, {count})")
    channels = graph.tensors[graph.input].channels
    for role, values in (("input_mean", graph.input_mean), ("input_std", graph.input_std)):
        _require(
            role,
            len(values) == min(channels, 4),
            f"{len(values)} values for {channels} input channels (one per channel, four at most)",
        )
        _require(role, all(map(math.isfinite, values)), f"{values} must be finite")
    _require("input_std", all(graph.input_std), f"{graph.input_std} must not be zero")


def _check_order(graph: Graph) -> None:
    known = {graph.input}
    names: set[str] = set()
    for op in graph.ops:
        require = partial(_require, f"op {op.name!r} ({op.kind})")
        require(op.name not in names, "the name is taken by an earlier op")
        names.add(op.name)
        require(op.kind in DEFINITIONS, "unknown kind of op")
        inputs = DEFINITIONS[op.kind].inputs
        require(len(op.inputs) == inputs, f"{len(op.inputs)} inputs, it takes {inputs}")
        for index in op.inputs:
            require(index in known, f"reads tensor {index} before an op has written it")
        require(0 <= op.output < len(graph.tensors), f"output tensor {op.output} does not exist")
        require(op.output not in known, f"tensor {op.output} is written a second time")
        known.add(op.output)
    _require("output", graph.output in known, f"no op writes tensor {graph.output}")


def _check_op(graph: Graph, op: Op) -> None:
    require = partial(_require, f"op {op.name!r} ({op.kind})")
    low, high = op.clamp
    require(-128 <= low <= high <= 127, f"clamp {op.clamp} must be ordered, in [-128, 127]")
    window = f"kernel {op.kernel} and stride {op.stride}"
    require(min(*op.kernel, *op.stride) >= 1, f"{window} must be positive")
    require(min(op.padding) >= 0, f"padding {op.padding} must not be negative")
    definition = DEFINITIONS[op.kind]
    sources = [graph.tensors[index] for index in op.inputs]
    source, target = sources[0], graph.tensors[op.output]
    _check_window(require, op)
    if is_layer(op):
        _check_parameters(require, op, source, target)
    else:
        require(
            op.weights is None and op.bias is None and op.weight_scales is None,
            "only layers (convolutions, fully connected) have weights, bias and weight scales",
        )
    shapes = [tensor.shape for tensor in sources]
    for other in shapes[1:]:
        alike = other[:2] == shapes[0][:2] if definition.joins else other == shapes[0]
        require(alike, f"reads {shapes[0]} and {other}, which do not go together")
    expected = definition.shape(op, shapes, target.shape)
    given = " and ".join(str(shape) for shape in shapes)
    require(
        target.shape == expected,
        f"output shape {target.shape} does not follow from input shape {given}, "
        f"which gives {expected}",
    )
    if definition.keeps_quantization:
        require(
            source.is_quantized_as(target.scale, target.zero_point),
            f"input quantization ({source.scale}, {source.zero_point}) must equal the output's "
            f"({target.scale}, {target.zero_point})",
        )


def _check_window(require: Requirement, op: Op) -> None:
    window = f"kernel {op.kernel} and stride {op.stride}"
    if DEFINITIONS[op.kind].has_window:
        top, left, bottom, right = op.padding
        require(max(*op.kernel, *op.stride) <= 255, f"{window} must be at most 255")
        fits = max(top, bottom) < op.kernel[0] and max(left, right) < op.kernel[1]
        require(fits, f"padding {op.padding} must be smaller than the kernel {op.kernel}")
        return
    plain = op.kernel == (1, 1) and op.stride == (1, 1)
    require(plain, f"{window} must be (1, 1), the op has no window")
    padded = op.kind == "pad" or not any(op.padding)
    require(padded, f"padding {op.padding} must be zero, the op pads nothing")


def _check_parameters(require: Requirement, op: Op, source: Tensor, target: Tensor) -> None:
    if op.kind == "depthwise_conv2d":
        require(
            target.channels % source.channels == 0,
            f"{target.channels} output channels are not a multiple of {source.channels}",
        )
    expected = weight_shape(op, source, target.channels)
    terms = math.prod(expected) // target.channels if op.kind != "depthwise_conv2d" else 1
    require(terms <= _MAX_TERMS, f"sums {terms} products, int32 is sure to hold {_MAX_TERMS}")
    for name, array, dtype, shape in (
        ("weights", op.weights, np.int8, expected),
        ("bias", op.bias, np.int32, (target.channels,)),
        ("weight_scales", op.weight_scales, np.float32, (target.channels,)),
    ):
        if array is None and name == "bias":
            continue  # the image gets zeros
        require(array is not None, f"{name} are missing")
        assert array is not None
        require(array.dtype == dtype, f"{name} are {array.dtype}, not {np.dtype(dtype)}")
        require(array.shape == shape, f"{name} have shape {array.shape}, not {shape}")
    assert op.weight_scales is not None
    sound = np.isfinite(op.weight_scales) & (op.weight_scales > 0)
    require(bool(np.all(sound)), "weight_scales must be positive and finite")


def _check_blocks(graph: Graph) -> None:
    for name, layers in graph.blocks.items():
        require = partial(_require, f"block {name!r}")
        require(len(layers) > 0, "has no layers")
        require(
            all(0 <= i < len(graph.ops) and is_layer(graph.ops[i]) for i in layers),
            f"{layers} must be indices of ops with weights",
        )
        require(all(a < b for a, b in itertools.pairwise(layers)), f"{layers} must ascend")


def check_is_graph(graph: object) -> None:
    """Raise a TypeError if the value is no int8 graph."""
    check_type("graph", graph, Graph, "a pmt.net.graph.Graph; model.to_graph() returns one")


class _Rule(NamedTuple):
    """Whether a value is of a type, and that type in words, which follow "must be"."""

    holds: Callable[[object], bool]
    words: str


def _instance(kinds: tuple[type, ...], words: str) -> _Rule:
    return _Rule(lambda value: isinstance(value, kinds), words)


def _sequence(rule: _Rule, words: str, count: int | None = None) -> _Rule:
    def holds(value: object) -> bool:
        fits = isinstance(value, tuple | list) and count in (None, len(value))
        return fits and all(map(rule.holds, value))  # type: ignore[call-overload]

    return _Rule(holds, words)


_TEXT = _instance((str,), "text")
_INTEGER = _instance((int, np.integer), "an integer")
_NUMBER = _instance((int, float, np.integer, np.floating), "a number")
_ARRAY = _instance((np.ndarray, type(None)), "an array, or None")
_INTEGERS = _sequence(_INTEGER, "a sequence of integers")
_NUMBERS = _sequence(_NUMBER, "a sequence of numbers")
_PAIR = _sequence(_INTEGER, "two integers", 2)

_OF_TENSOR = {
    "name": _TEXT,
    **dict.fromkeys(("height", "width", "channels", "zero_point"), _INTEGER),
    "scale": _NUMBER,
}
_OF_OP = {
    **dict.fromkeys(("kind", "name"), _TEXT),
    "inputs": _INTEGERS,
    "output": _INTEGER,
    **dict.fromkeys(("kernel", "stride", "clamp"), _PAIR),
    "padding": _sequence(_INTEGER, "four integers", 4),
    **dict.fromkeys(("weights", "bias", "weight_scales"), _ARRAY),
}
_OF_GRAPH = {
    **dict.fromkeys(("input", "output"), _INTEGER),
    **dict.fromkeys(("input_mean", "input_std"), _NUMBERS),
    "blocks": _instance((Mapping,), "a dict"),
}


def check_types(graph: Any, tensor: type, op: type) -> None:
    """Raise a TypeError if a field of a graph, its tensors or its ops is of another type."""
    for name, kind, rules in (("tensors", tensor, _OF_TENSOR), ("ops", op, _OF_OP)):
        members = getattr(graph, name)
        if not _sequence(_instance((kind,), ""), "").holds(members):
            raise TypeError(f"{name} is {kind_of(members)}: must be a list of {kind.__name__}")
        for index, member in enumerate(members):
            _check_fields(f"{name}[{index}].", member, rules)
    _check_fields("", graph, _OF_GRAPH)
    for name, layers in graph.blocks.items():
        if not _INTEGERS.holds(layers):
            raise TypeError(f"blocks[{name!r}] is {kind_of(layers)}: must be {_INTEGERS.words}")


def _check_fields(place: str, value: object, rules: Mapping[str, _Rule]) -> None:
    for name, rule in rules.items():
        found = getattr(value, name)
        if not rule.holds(found):
            raise TypeError(f"{place}{name} is {kind_of(found)}: must be {rule.words}")
