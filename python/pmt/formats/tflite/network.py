"""The graph under construction while a ``.tflite`` file is read, operator by operator."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pmt._util.arrays import Int64Array
from pmt.formats.layers import NO_STATE, Unsupported
from pmt.formats.tflite.file import CONVERT_INT8, FileModel, FileOp, FileTensor
from pmt.net.graph import Op, Tensor
from pmt.net.ops import CLAMPING_KINDS, OpKind, Padding, Pair, Shape

_LONGEST = 32  # characters of a layer's name
# Last parts that name the operator, not the layer. "conv2d" is the default name of a layer.
_OPERATORS = ("Conv2D", "DepthwiseConv2D", "MatMul", "convolution", "depthwise")
_GENERIC = (
    *(*_OPERATORS, "BiasAdd", "ReadVariableOp", "Squeeze", "resource"),
    *("kernel", "weights", "depthwise_kernel", "depthwise_weights"),
)
_LARGEST = 2**28  # values that all activations of an image may have
_FLOATS = ("FLOAT32", "FLOAT16", "FLOAT64", "BFLOAT16")
_OTHER_SCHEMES = {
    "INT16": "its activations are INT16, int8 is trained here",
    "UINT8": "its activations are UINT8, the asymmetric scheme of TensorFlow 1",
}
_INT8_WEIGHTS = ("INT8", "INT4")


def short_name(weights: str) -> str:
    """Return ``conv2d_1`` for weights named ``model/conv2d_1/Conv2D``, or nothing.

    Fused operators join their names with semicolons; the convolution's is taken where it is there.
    """
    names = weights.split(";")
    chosen = next((name for name in names if name.rpartition("/")[2] in _OPERATORS), names[0])
    parts = [part for part in chosen.split("/") if part]
    while parts and parts[-1] in _GENERIC:
        parts.pop()
    name = parts[-1] if parts else ""
    plain = name.isascii() and name.replace("_", "").replace(".", "").isalnum()
    return name if plain and len(name) <= _LONGEST else ""


def is_shape_value(tensor: FileTensor) -> bool:
    """Whether a tensor holds sizes, not an activation."""
    return tensor.data is None and tensor.dtype in ("INT32", "INT64")


def check_types(op: FileOp, model: FileModel) -> None:
    """Raise Unsupported unless activations are INT8 and constants are stored as plain arrays."""
    tensors = [model.tensors[i] for i in (*op.inputs, *op.outputs) if i >= 0]
    dtypes = {t.dtype for t in tensors if t.data is None and not is_shape_value(t)}
    if is_shape_value(model.tensors[op.outputs[0]]):
        return
    for dtype, reason in _OTHER_SCHEMES.items():
        if dtype in dtypes:
            raise Unsupported(reason, CONVERT_INT8)
    if dtypes & set(_FLOATS):
        if any(t.data is not None and t.dtype in _INT8_WEIGHTS for t in tensors):
            raise Unsupported(
                "is hybrid, dynamic-range quantized: int8 weights, float activations", CONVERT_INT8
            )
        raise Unsupported("computes in float", CONVERT_INT8)
    for dtype in sorted(dtypes - {"INT8"}):
        raise Unsupported(f"its activations are {dtype}", CONVERT_INT8)
    for tensor in tensors:
        if tensor.storage == "variable":
            raise Unsupported(
                f"tensor {tensor.name!r} keeps a state from one input to the next", NO_STATE
            )
        if tensor.storage:
            raise Unsupported(
                f"the values of tensor {tensor.name!r} are {tensor.storage}",
                "store them as a plain constant of the file",
            )


def quantization(tensor: FileTensor) -> tuple[float, int]:
    """Return scale and zero point of an int8 activation."""
    if tensor.dtype != "INT8":
        raise Unsupported(f"tensor {tensor.name!r} is {tensor.dtype}, not INT8", CONVERT_INT8)
    if len(tensor.scales) != 1 or len(tensor.zero_points) > 1:
        raise Unsupported(
            f"tensor {tensor.name!r} has {len(tensor.scales)} scales, an activation needs one",
            CONVERT_INT8,
        )
    scale = float(tensor.scales[0])
    zero_point = int(tensor.zero_points[0]) if len(tensor.zero_points) else 0
    if not (math.isfinite(scale) and scale > 0) or not -128 <= zero_point <= 127:
        raise Unsupported(
            f"tensor {tensor.name!r} has scale {scale}, zero point {zero_point}",
            "the scale must be positive, the zero point in [-128, 127]; convert the model again",
        )
    return scale, zero_point


def layout(shape: tuple[int, ...]) -> Shape:
    """Return height, width, channels of an activation of one image.

    Unsupported is raised if its shape is not (1, H, W, C), (1, N, C), (N, C) or (C,), or too large.
    """
    inner = list(shape[1:] if len(shape) > 2 else shape)
    while len(inner) > 3 and 1 in inner:
        inner.remove(1)  # no operator looks into more than height, width and channels
    batch_first = len(shape) < 3 or shape[0] == 1
    if not 1 <= len(inner) <= 3 or not batch_first or min(inner) < 1:
        raise Unsupported(
            f"an activation has shape {shape}",
            "shapes (1, H, W, C), (1, N, C) and (1, C) of positive sizes are imported; convert "
            "with batch size 1 (or None) and a fixed input size",
        )
    height, width, channels = (1, 1, *inner)[-3:]
    if height * width * channels > _LARGEST:
        raise Unsupported(f"an activation of shape {shape} is too large", "at most 2^28 values")
    return height, width, channels


class StoredLayer(NamedTuple):
    """The tensors of the file that hold a layer's parameters; -1 for no bias."""

    weights: int
    bias: int


@dataclass
class Network:
    """Tensors and ops made so far, and the parts of the file that they stand for.

    ``index`` maps a tensor of the file to one of the graph, ``shapes`` to its shape for one image
    (the file's own may be wrong where a batch is unknown), ``sizes`` to the values of a shape
    computation. ``absorbed`` is the padding of a tensor that its readers take over, 0 where that is
    a requantization. ``channels_first`` are tensors of the file that number the values of the
    graph's by channel, with the axes that a MEAN has taken of them. ``layers`` are those
    that the file has weights for. ``weights_left`` bounds what a file may unpack to.
    """

    model: FileModel
    readers: dict[int, list[FileOp]]
    tensors: list[Tensor] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    index: dict[int, int] = field(default_factory=dict)
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    sizes: dict[int, Int64Array] = field(default_factory=dict)
    absorbed: dict[int, Padding] = field(default_factory=dict)
    channels_first: dict[int, set[int]] = field(default_factory=dict)
    layers: dict[str, StoredLayer] = field(default_factory=dict)
    weights_left: int = 0
    _shared: set[int] = field(default_factory=set)
    _numbers: Counter[str] = field(default_factory=Counter)
    _names: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        # Zeros of groups and dilation may multiply the weights; a small hostile file must not
        # become a huge network.
        self.weights_left = max(2**24, 4 * self.model.file_bytes)

    def enter(self, file_tensor: int, shape: tuple[int, ...], size: Shape | None = None) -> int:
        """Make the graph's tensor for an activation of the file; return its index.

        ``size`` is its height, width and channels where they do not follow from ``shape``.
        """
        stored = self.model.tensors[file_tensor]
        self.tensors.append(Tensor(stored.name, *(size or layout(shape)), *quantization(stored)))
        self._map(file_tensor, len(self.tensors) - 1, shape)
        return len(self.tensors) - 1

    def alias(self, file_tensor: int, source: int, shape: tuple[int, ...]) -> None:
        """Let an activation of the file be the graph's tensor of another one."""
        self._map(file_tensor, self.index[source], shape)
        if len(self.readers.get(source, ())) > 1:
            self._shared.add(self.index[source])

    def _map(self, file_tensor: int, index: int, shape: tuple[int, ...]) -> None:
        if file_tensor in self.index:
            raise Unsupported(f"writes tensor {file_tensor} a second time", "the file is damaged")
        self.index[file_tensor] = index
        self.shapes[file_tensor] = shape

    def reserve(self, weights: int) -> None:
        """Count weights before they are made; Unsupported if the file may not unpack to them."""
        self.weights_left -= weights
        if self.weights_left < 0:
            raise Unsupported(
                "its weights, with zeros for groups and dilation, outgrow the file more than "
                "four times",
                "use fewer groups or less dilation",
            )

    def clamp_producer(self, source: int, clamp: Pair) -> bool:
        """Narrow the clamp of the op that makes a tensor, if nothing else reads that tensor."""
        index = self.index[source]
        op = next((op for op in reversed(self.ops) if op.output == index), None)
        alone = len(self.readers.get(source, ())) == 1 and index not in self._shared
        if op is None or not alone or op.kind not in CLAMPING_KINDS:
            return False
        narrowed = max(op.clamp[0], clamp[0]), min(op.clamp[1], clamp[1])
        if narrowed[0] >= narrowed[1]:
            return False
        op.clamp = narrowed
        return True

    def intermediate(self, tensor: Tensor) -> int:
        """Add a tensor that the file does not have; return its index."""
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def name(self, stem: str, weights: FileTensor | None = None) -> str:
        """Return a new name: that of the weights where it is short and free, else a number."""
        name = short_name(weights.name) if weights else ""
        while not name or name in self._names:
            name = f"{stem}{self._numbers[stem]}"
            self._numbers[stem] += 1
        self._names.add(name)
        return name


@dataclass(frozen=True)
class Step:
    """One operator of the file, about to become ops of the network."""

    op: FileOp
    network: Network

    @property
    def output(self) -> int:
        """Tensor of the file that the operator writes."""
        return self.op.outputs[0]

    def constant(self, position: int) -> FileTensor | None:
        """Return an input as a constant, ``None`` if it is missing or an activation."""
        if position >= len(self.op.inputs) or not self.is_constant(position):
            return None
        return self.network.model.tensors[self.op.inputs[position]]

    def is_constant(self, position: int) -> bool:
        """Whether an input has its values in the file."""
        return self.network.model.is_constant(self.op.inputs[position])

    def integers(self, position: int) -> list[int] | None:
        """Return an input of at most eight sizes or axes, constant or computed."""
        if position >= len(self.op.inputs):
            return None
        tensor, known = self.constant(position), self.network.sizes
        if tensor is not None and tensor.dtype in ("INT32", "INT64") and tensor.data is not None:
            return [int(n) for n in tensor.data.ravel()] if tensor.data.size <= 8 else None
        values = known.get(self.op.inputs[position])
        return None if values is None else [int(n) for n in values.ravel()]

    def source(self, position: int = 0) -> int:
        """Return the tensor of the graph that an input is; Unsupported if no operator wrote it."""
        if position >= len(self.op.inputs) or self.op.inputs[position] < 0:
            raise Unsupported(f"input {position} is missing", "the file is damaged")
        tensor = self.op.inputs[position]
        if self.is_constant(position):
            raise Unsupported(
                f"input {position} is a constant", "only activations are computed; fold it"
            )
        if tensor not in self.network.index:
            raise Unsupported(
                f"reads tensor {tensor} before an operator writes it",
                "a cycle, or operators out of order: the file is damaged",
            )
        return self.network.index[tensor]

    def shape(self, position: int = 0) -> tuple[int, ...]:
        """Return the shape of an input activation, for one image."""
        self.source(position)
        return self.network.shapes[self.op.inputs[position]]

    def tensor(self, position: int = 0) -> Tensor:
        """Return an input activation as a tensor of the graph."""
        return self.network.tensors[self.source(position)]

    def target_quantization(self) -> tuple[float, int]:
        """Return scale and zero point of the output."""
        return quantization(self.network.model.tensors[self.output])

    def keeps_quantization(self) -> bool:
        """Whether the first input and the output have one scale and zero point."""
        return self.tensor().is_quantized_as(*self.target_quantization())

    def require_same_quantization(self) -> None:
        """Raise Unsupported unless the first input and the output are quantized alike."""
        if not self.keeps_quantization():
            raise Unsupported("input and output are quantized differently", CONVERT_INT8)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise Unsupported if the file says another shape of the output, and knew it."""
        stored = self.network.model.tensors[self.output]
        unknown = stored.is_dynamic or (len(shape) < 3 and stored.signature[:1] == (-1,))
        if not unknown and layout(stored.shape) != layout(shape):
            raise Unsupported(
                f"its output has shape {stored.shape}, but its inputs and options give {shape}",
                "the file contradicts itself; convert the model again",
            )

    def alias(self, shape: tuple[int, ...]) -> None:
        """Let the output be the first input, bytes and all."""
        self.network.alias(self.output, self.op.inputs[0], shape)

    def emit(
        self,
        kind: OpKind,
        shape: tuple[int, ...],
        *,
        stem: str,
        named_by: FileTensor | None = None,
        sources: Sequence[int] | None = None,
        size: Shape | None = None,
        **settings: Any,
    ) -> Op:
        """Append the op that writes the output, whose shape for one image is ``shape``.

        ``size`` is height, width and channels of the graph's tensor if the file numbers the
        positions in another way than the graph does. Unsupported is raised if the file says another
        shape, and it is not one that its converter did not know.
        """
        self.check_shape(shape)
        inputs = tuple(sources) if sources is not None else (self.source(),)
        index = self.network.enter(self.output, shape, size)
        op = Op(kind, self.network.name(stem, named_by), inputs, index, **settings)
        self.network.ops.append(op)
        return op
