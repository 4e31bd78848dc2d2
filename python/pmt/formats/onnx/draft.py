"""The network while nodes are read, and values of the ONNX graph as views of its activations.

Activations are stored as height, width, channels. ONNX networks move axes about (NCHW, NHWC,
flattened in either order), which moves no data here: a view remembers which of the letters N, H, W
and C each axis of the ONNX value runs over. Sizes of 1 have no letter, since they can stand
anywhere.

Both importers share the network: layers whose weights are still float, or int8 with scales. Scales
and shifts of single channels, biases and clippings are taken into the op before them where nothing
else reads its output; else they become a 1x1 depthwise layer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._core import LARGEST_SIDE, MOST_CHANNELS, MOST_OPS
from pmt._util.arrays import Array, DoubleArray
from pmt.formats.layers import Unsupported, unit_layer
from pmt.net.float_graph import Bounds
from pmt.net.graph import channel_shape, is_layer
from pmt.net.ops import (
    ACTIVATED_KINDS,
    CLAMPING_KINDS,
    JOINING_KINDS,
    KEEPING_KINDS,
    MOVING_KINDS,
    BaseOp,
    OpKind,
    Shape,
)
from pmt.net.pixels import MOST_PIXEL_CHANNELS, is_image

Quantization = tuple[float, int]  # scale, zero point of int8

OPEN: Bounds = (-np.inf, np.inf)
QUANTIZE_BEFORE = (
    "put a QuantizeLinear and a DequantizeLinear in front of it, or give the float network to "
    "`pmt quantize`"
)
# Operators that quantize_static leaves in float unless its op_types_to_quantize has them.
_LEFT_IN_FLOAT = ("Div", "HardSigmoid", "Max", "Min", "ReduceMean", "Sub", "Sum")
_MEMORY_ORDER = "HWC"
_SAME_STEP = 1e-3  # of a scale: what float32 may lose


@dataclass(frozen=True)
class Origin:
    """The node of the file that computes an activation, by its operator and its words."""

    kind: str
    text: str


def quantize_before(*nodes: Origin) -> str:
    """Return the remedy for values that nodes compute in float, or read so."""
    left = sorted({node.kind for node in nodes} & set(_LEFT_IN_FLOAT))
    if not left:
        return QUANTIZE_BEFORE
    types = ", ".join(["*QDQRegistry", "*QLinearOpsRegistry", *map(repr, left)])
    return (
        f"quantize_static leaves {' and '.join(left)} in float: give it op_types_to_quantize="
        f"[{types}], of onnxruntime.quantization.registry, or the float network to `pmt quantize`"
    )


@dataclass(frozen=True)
class View:
    """One ONNX value: an activation and how it is looked at.

    ``axes`` has the letters of each ONNX axis, the outermost first. ``sole`` says that nothing else
    reads the activation, so that the op which writes it may be changed. ``raw`` says that, in a
    quantized network, no QuantizeLinear stands between the activation and this value. ``dropped``
    names the operator after which nothing may follow (a softmax that was left out).
    """

    tensor: int
    batch: int
    size: Shape
    axes: tuple[str, ...]
    sole: bool = True
    raw: bool = True
    dropped: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the ONNX value."""
        return tuple(math.prod(self.length(letter) for letter in axis) for axis in self.axes)

    def length(self, letter: str) -> int:
        """Size of the activation along one of the letters N, H, W, C."""
        return self.batch if letter == "N" else self.size[_MEMORY_ORDER.index(letter)]

    def letters(self, text: str) -> str:
        """Those of some letters that stand for a size above 1."""
        return "".join(letter for letter in text if self.length(letter) > 1)

    @property
    def in_memory_order(self) -> bool:
        """Whether the values follow each other as they are stored."""
        return "".join(self.axes) == self.letters("N" + _MEMORY_ORDER)

    def is_nchw(self) -> bool:
        """Whether this is the ordinary view of a convolution: batch, channels, height, width."""
        return self.axes == tuple(self.letters(letter) for letter in "NCHW")

    def is_features(self) -> bool:
        """Whether this is a matrix of one row per image."""
        return len(self.axes) == 2 and self.axes[0] == self.letters("N")

    def columns_to_memory(self) -> npt.NDArray[np.intp]:
        """Return which feature each stored value is, for a view that :meth:`is_features`."""
        letters = self.axes[1]
        numbers = np.arange(self.shape[1]).reshape([self.length(x) for x in letters])
        order = [letters.index(letter) for letter in self.letters(_MEMORY_ORDER)]
        return np.asarray(numbers.transpose(order).ravel())


def image_view(
    tensor: int, batch: int, size: Shape, order: str, *, sole: bool = True, raw: bool = True
) -> View:
    """Return the view with one axis a letter of ``order``, such as ``NCHW`` or ``NHWC``."""
    bare = View(tensor, batch, size, (), sole, raw)
    return replace(bare, axes=tuple(bare.letters(letter) for letter in order))


def transposed(view: View, order: Sequence[int]) -> View:
    """Return the view with its axes in another order."""
    if sorted(order) != list(range(len(view.axes))):
        raise Unsupported(
            f"perm {list(order)} does not order {len(view.axes)} axes", "export again"
        )
    return replace(view, axes=tuple(view.axes[axis] for axis in order))


def flattened(view: View, axis: int) -> View:
    """Return the view as a matrix, all axes from ``axis`` on in the second dimension."""
    head, tail = "".join(view.axes[:axis]), "".join(view.axes[axis:])
    return replace(view, axes=(head, tail))


def reshaped(view: View, shape: Sequence[int]) -> View | None:
    """Return the view regrouped to another shape, or None where that splits a letter."""
    remaining = list("".join(view.axes))
    axes = []
    for size in shape:
        letters = ""
        while math.prod(view.length(letter) for letter in letters) < size and remaining:
            letters += remaining.pop(0)
        if math.prod(view.length(letter) for letter in letters) != size:
            return None
        axes.append(letters)
    return replace(view, axes=tuple(axes)) if not remaining else None


@dataclass
class DraftTensor:
    """One activation; ``quantization`` stays None in a float network.

    ``stored`` is the integer type of its values in the file, ``origin`` the last node that computes
    them, but for a Relu or Clip, which quantize_static quantizes only with what it reads.
    """

    name: str
    size: Shape
    origin: Origin
    quantization: Quantization | None = None
    stored: str = ""


@dataclass
class DraftOp(BaseOp):
    """One op. ``bias`` is real-valued; ``scales`` are those of int8 ``weights``, else None."""

    bounds: Bounds = OPEN
    weights: Array | None = None
    scales: DoubleArray | None = None
    bias: DoubleArray | None = None
    sole: bool = False  # nothing else reads what this op reads
    fixed: bool = False  # its weights stand for another op, and are not offered for training
    origin: Origin = Origin("", "")


@dataclass
class Draft:
    """Activations, ops in order, and the steps on the input before the first of them.

    The first activation is the network's input times ``factor`` plus ``offset``, channel by
    channel. ``quantized`` says that weights are int8 and that every activation needs a scale.
    ``budget`` is how many weights all layers together may have: a small file must not become a
    large network by naming the same weights again and again. ``node`` is the one being converted.
    """

    quantized: bool
    budget: int
    tensors: list[DraftTensor] = field(default_factory=list)
    ops: list[DraftOp] = field(default_factory=list)
    factor: DoubleArray = field(default_factory=lambda: np.ones(0))
    offset: DoubleArray = field(default_factory=lambda: np.zeros(0))
    dropped: list[str] = field(default_factory=list)
    node: Origin = Origin("", "the input")
    _names: set[str] = field(default_factory=set)

    def tensor(self, name: str, size: Shape) -> int:
        """Add an activation."""
        self.tensors.append(DraftTensor(name, size, self.node))
        return len(self.tensors) - 1

    def unique(self, name: str) -> str:
        """Return an op's name that no other op has."""
        number, result = 2, name
        while result in self._names:
            result, number = f"{name}_{number}", number + 1
        self._names.add(result)
        return result

    def emit(self, kind: OpKind, name: str, sources: list[View], size: Shape, **more: Any) -> View:
        """Add an op and return its output as batch, channels, height, width.

        Unsupported is raised if the op reads a value that a quantized network never quantizes.
        """
        for view in sources:
            keeps = kind in (*KEEPING_KINDS, *JOINING_KINDS)
            if kind == "average_pool":  # the importer looks at the input's scale
                keeps = view.tensor == 0
            if self.quantized and view.raw and not keeps:
                origin = self.origin(view.tensor)
                raise Unsupported(
                    f"it reads {origin.text} in float, without QuantizeLinear and DequantizeLinear "
                    "between",
                    quantize_before(origin, self.node),
                )
        self._require_room(size, more.get("weights"))
        name = self.unique(name)
        target = self.tensor(name, size)
        inputs, sole = tuple(view.tensor for view in sources), all(view.sole for view in sources)
        op = DraftOp(kind, name, inputs, target, sole=sole, origin=self.node, **more)
        self.ops.append(op)
        raw = sources[0].raw or kind not in MOVING_KINDS
        return image_view(target, sources[0].batch, size, "NCHW", raw=raw)

    def _require_room(self, size: Shape, weights: Array | None) -> None:
        if max(size[:2]) > LARGEST_SIDE or size[2] > MOST_CHANNELS or len(self.ops) >= MOST_OPS:
            raise Unsupported(
                f"it makes op {len(self.ops) + 1}, of height, width, channels {size}",
                f"at most {MOST_OPS} ops, sides of {LARGEST_SIDE} and {MOST_CHANNELS} channels "
                "are supported",
            )
        self.budget -= 0 if weights is None else weights.size
        if self.budget < 0:
            raise Unsupported(
                "the layers have far more weights than the file, which uses them again and again",
                "export a network whose layers have weights of their own",
            )

    def origin(self, tensor: int) -> Origin:
        """Return the node that computes an activation, before those that are quantized as it is."""
        op, origin = self._writes(tensor), self.tensors[tensor].origin
        if op is None or op.kind not in KEEPING_KINDS or origin.kind in _LEFT_IN_FLOAT:
            return origin
        return self.origin(op.inputs[0])

    def writer(self, view: View) -> DraftOp | None:
        """Return the op that may still be changed in place of adding one after it."""
        if not view.sole:
            return None
        return self._writes(view.tensor)

    def _writes(self, tensor: int) -> DraftOp | None:
        return next((op for op in self.ops if op.output == tensor), None)

    def scale_and_shift(
        self, view: View, factor: DoubleArray, offset: DoubleArray, name: str
    ) -> View:
        """Return ``view * factor + offset``, vectors over the activation's channels."""
        tensor, op = self.tensors[view.tensor], self.writer(view)
        changeable = view.sole and view.raw and tensor.quantization is None
        # Float inputs that are no pixels are quantized as they are: the network scales them.
        folds = (self.quantized and tensor.size[2] <= MOST_PIXEL_CHANNELS) or is_image(tensor.size)
        if changeable and view.tensor == 0 and folds and np.all(factor > 0):
            self.factor, self.offset = self.factor * factor, self.offset * factor + offset
            return view
        foldable = op is not None and is_layer(op) and op.bounds == OPEN
        if changeable and op is not None and foldable and self._fold(op, factor, offset):
            return view
        return self.channelwise(view, name, factor, offset)

    def _fold(self, op: DraftOp, factor: DoubleArray, offset: DoubleArray) -> bool:
        assert op.weights is not None
        shape = channel_shape(op, op.weights.ndim)
        bias = (0.0 if op.bias is None else op.bias) * factor + offset
        if op.scales is None:
            op.weights = (op.weights * factor.reshape(shape)).astype(np.float32)
            op.bias = bias.astype(np.float32).astype(np.float64)
            return True
        if np.any(factor == 0) or (np.any(factor < 0) and op.weights.min() == -128):
            return False
        op.weights = op.weights * np.sign(factor).astype(np.int8).reshape(shape)
        op.scales, op.bias = op.scales * np.abs(factor), bias
        return True

    def clip(self, view: View, low: float, high: float, name: str) -> View:
        """Return the view's values clipped to [low, high]."""
        kinds = CLAMPING_KINDS if self.quantized else ACTIVATED_KINDS
        last = op = self.writer(view)
        while op is not None and op.kind in ("max_pool", "reshape") and op.sole:
            op = self._writes(op.inputs[0])  # clipping before them is the same
        for candidate in (op, last):
            if candidate is None or candidate.kind not in kinds:
                continue
            if not all(self._are_steps((low, high), i) for i in (view.tensor, candidate.output)):
                continue  # a later, finer scale would see the bounds rounded
            lower, upper = (float(np.clip(bound, low, high)) for bound in candidate.bounds)
            if lower < upper:
                candidate.bounds = (lower, upper)
                return view
        if self.quantized and view.raw:  # before a QuantizeLinear, which commutes with clipping
            result = self.emit("max_pool", name, [view], view.size, bounds=(low, high))
            return replace(result, axes=view.axes)
        ones = np.ones(view.size[2])
        return self.channelwise(view, name, ones, np.zeros_like(ones), (low, high))

    def _are_steps(self, bounds: Bounds, tensor: int) -> bool:
        """Whether bounds are values of an activation, on their side beyond its range, or open.

        All are where the activation has no scale yet.
        """
        quantization = self.tensors[tensor].quantization
        if quantization is None:
            return True
        scale, zero = quantization
        low, high = (bound / scale + zero for bound in bounds)
        if low > 127 + _SAME_STEP or high < -128 - _SAME_STEP:
            return False  # all values become a bound that the activation does not have
        steps = np.array([max(low, -128), min(high, 127)])
        return bool(np.all(np.abs(steps - np.rint(steps)) < _SAME_STEP))

    def channelwise(
        self, view: View, name: str, factor: DoubleArray, offset: DoubleArray, bounds: Bounds = OPEN
    ) -> View:
        """Add a 1x1 depthwise layer for ``clip(view * factor + offset)``."""
        self._require_room(view.size, None)
        parameters: dict[str, Any] = {"weights": factor.astype(np.float32).reshape(1, 1, -1)}
        if self.quantized:
            parameters["weights"], parameters["scales"] = unit_layer(factor)
        result = self.emit(
            "depthwise_conv2d",
            name,
            [view],
            view.size,
            bounds=bounds,
            fixed=bool(np.all(factor == 1) and np.all(offset == 0)),
            bias=np.array(offset, np.float64),
            **parameters,
        )
        return replace(result, axes=view.axes)


def clean(draft: Draft, output: int) -> int:
    """Join paddings and float scalings with the layer after them, and renumber the activations.

    The output's new number is returned.
    """
    readers = Counter(index for op in draft.ops for index in op.inputs)
    readers[output] += 1
    by_input = {op.inputs[0]: op for op in draft.ops}
    writers = {op.output: op for op in draft.ops}
    kept = []
    for op in draft.ops:
        following = by_input.get(op.output)
        joined = following is not None and readers[op.output] == 1
        if joined and following is not None and _join(draft, op, following, writers):
            following.inputs = op.inputs
            by_input[op.inputs[0]] = following
            continue
        kept.append(op)
    draft.ops = kept
    return _renumber(draft, output)


def _join(draft: Draft, op: DraftOp, following: DraftOp, writers: dict[int, DraftOp]) -> bool:
    if op.kind == "pad":
        return _join_padding(draft, op, following, writers)
    plain = op.kind == "depthwise_conv2d" and op.kernel == (1, 1) and op.stride == (1, 1)
    unpadded = not any(op.padding) and op.bounds == OPEN and not draft.quantized
    same_channels = draft.tensors[op.inputs[0]].size == draft.tensors[op.output].size
    if plain and unpadded and same_channels and is_layer(following):
        return _join_scaling(op, following)
    return False


def _join_padding(
    draft: Draft, op: DraftOp, following: DraftOp, writers: dict[int, DraftOp]
) -> bool:
    source, target = draft.tensors[op.inputs[0]], draft.tensors[op.output]
    if target.quantization not in (None, source.quantization):
        if source.quantization is not None:
            return False
        source.quantization = target.quantization
    total = tuple(a + b for a, b in zip(op.padding, following.padding, strict=True))
    top, left, bottom, right = total
    height, width = following.kernel
    padded = draft.tensors[op.output].size
    if (height, width) == padded[:2] and not any(following.padding):
        return False  # a dense layer, whose exact logits are read
    if max(top, bottom) >= height or max(left, right) >= width:
        return False
    writer = writers.get(op.inputs[0])
    # A zero wins in no window of values that are never negative.
    harmless = following.kind == "max_pool" and writer is not None and writer.bounds[0] >= 0
    if following.kind not in ("conv2d", "depthwise_conv2d") and not harmless:
        return False
    following.padding = (top, left, bottom, right)
    return True


def _join_scaling(op: DraftOp, following: DraftOp) -> bool:
    """Take ``x * factor + offset`` into the weights and bias of the layer that reads it."""
    assert op.weights is not None
    assert following.weights is not None
    channels = op.weights.shape[2]
    factor = op.weights[0, 0].astype(np.float64)
    offset = np.zeros(channels) if op.bias is None else op.bias
    if any(following.padding) and np.any(offset != 0):
        return False  # the padding's zeros would have to be shifted too
    weights = following.weights.astype(np.float64)
    if following.kind == "depthwise_conv2d":
        repeat = weights.shape[2] // channels
        bias = weights.sum(axis=(0, 1)) * np.repeat(offset, repeat)
        weights = weights * np.repeat(factor, repeat)
    else:
        by_channel = weights.reshape(len(weights), -1, channels)
        bias = (by_channel * offset).sum(axis=(1, 2))
        weights = (by_channel * factor).reshape(weights.shape)
    following.weights = weights.astype(np.float32)
    following.bias = bias if following.bias is None else following.bias + bias
    return True


def _renumber(draft: Draft, output: int) -> int:
    used = sorted({0, output, *(i for op in draft.ops for i in (*op.inputs, op.output))})
    numbers = {old: new for new, old in enumerate(used)}
    draft.tensors = [draft.tensors[old] for old in used]
    for op in draft.ops:
        op.inputs, op.output = tuple(numbers[i] for i in op.inputs), numbers[op.output]
    return numbers[output]
