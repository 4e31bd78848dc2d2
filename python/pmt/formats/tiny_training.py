"""Reader of the int8 networks of the tiny-training project (``.pkl``, a torch zip archive).

The archive, read without torch, holds dicts: ``first_conv``, ``blocks`` (each with any of
``pointwise1``, ``depthwise``, ``pointwise2``, and ``residual``: the block's input, or a convolution
of it), ``feature_mix`` or none, ``classifier``. Kernels of any size are padded by (k - 1) // 2 on
each side; groups that are not depthwise become zeros of a dense convolution. Weights are stored as
(out, in, kernel, kernel) and become (out, kernel, kernel, in) here. Scales of activations are
double precision in the file; weight scales move by up to two units in the last place where that
keeps the requantization exact in float32. Dead channels (a weight scale near 4e-9 with a bias at
the end of int32) pass through.
"""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from pmt._core import MOST_CHANNELS
from pmt._util.arrays import Array, FloatArray, Int8Array
from pmt._util.checks import checked_range
from pmt._util.safe_pickle import PickledArray, array_globals, load
from pmt._util.text import printable
from pmt.formats.layers import check_limits, consecutive_blocks, grouped_kernel
from pmt.formats.reading import require_file
from pmt.net.graph import Graph, Op, Tensor, is_layer
from pmt.net.ops import OpKind, output_size
from pmt.net.pixels import raw_pixels

MAX_MEMBER_BYTES = 64 * 2**20
MAX_RATIO = 100
_WIDER = {np.dtype(np.float32): np.dtype(np.float64), np.dtype(np.int32): np.dtype(np.int64)}
# RuntimeError: an encrypted member; ValueError: names that are not UTF-8.
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error),
    *(EOFError, OSError, RuntimeError, ValueError),
)
# Far above the 6,000 of a 50-layer network; bounds time, memory and the depth of nested tuples.
MAX_INSTRUCTIONS = 100_000
_PICKLE = b"\x80"  # first byte of a pickle since Python 2.3
_INSTRUCTIONS = {
    "PROTO", "FRAME", "STOP", "MARK", "GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "BINGET",
    "LONG_BINGET", "BINPUT", "LONG_BINPUT", "MEMOIZE", "EMPTY_DICT", "SETITEM", "SETITEMS",
    "EMPTY_LIST", "APPEND", "APPENDS", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "NONE",
    "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE",
    "SHORT_BINUNICODE", "BINBYTES", "SHORT_BINBYTES",
}  # fmt: skip
_DTYPES = {"i1": "i1", "u1": "u1", "i4": "<i4", "i8": "<i8", "f4": "<f4", "f8": "<f8"}
_MAX_STEPS = 2  # more never helps: two roundings lose less than two units in the last place
# The paper trains first_conv and the 13 expanding pointwise convolutions of its MCUNet.
_PAPER_LAYERS = 14
_MAX_BLOCKS = 200
_MAX_KERNEL = 15
_MAX_STRIDE = 8
_MOST_WEIGHTS = 2**24  # with zeros for groups: an archive must not become a huge network


def read_pickle(path: Path) -> Any:
    """Return the contents of ``data.pkl`` in the archive, arrays as :class:`PickledArray`.

    ValueError is raised if it is not a sound zip archive with exactly one ``data.pkl``, the pickle
    would unpack to more than 64 MiB or to more than 100 times its packed size, is damaged, or asks
    for more than dicts, lists, tuples, text, numbers and arrays.
    """
    require_file(path)
    with path.open("rb") as file:
        plain = file.read(1) == _PICKLE
    if plain:
        raise ValueError(
            f"{path.name}: is a plain pickle, which may run code and is not opened; a "
            "tiny-training network is a zip archive of torch.save; export other networks to .onnx "
            "or .tflite"
        )
    try:
        with zipfile.ZipFile(path) as archive:
            data = archive.read(_pickle_member(path, archive))
    except _DAMAGE as error:
        raise ValueError(f"{path.name}: is not a sound torch zip archive: {error}") from None
    try:
        return load(
            data,
            array_globals(_DTYPES),
            instructions=_INSTRUCTIONS,
            most_instructions=MAX_INSTRUCTIONS,
        )
    except MemoryError:
        raise ValueError(f"{path.name}: refused, its pickle asks for too much memory") from None
    except Exception as error:  # a damaged pickle raises nearly anything
        raise ValueError(
            f"{path.name}: refused, its pickle is damaged or holds more than dicts and NumPy "
            f"arrays: {error}"
        ) from None


def _pickle_member(path: Path, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    found = [m for m in archive.infolist() if m.filename.rpartition("/")[2] == "data.pkl"]
    if len(found) != 1:
        raise zipfile.BadZipFile(f"it has {len(found)} members named data.pkl, expected one")
    member = found[0]
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile(f"{member.filename} is packed by method {member.compress_type}")
    if member.file_size > MAX_MEMBER_BYTES:
        raise zipfile.BadZipFile(
            f"{member.filename} unpacks to {member.file_size} bytes, "
            f"more than the limit of {MAX_MEMBER_BYTES}"
        )
    if member.file_size > MAX_RATIO * max(member.compress_size, 1):
        raise zipfile.BadZipFile(
            f"{member.filename} unpacks {member.compress_size} bytes to {member.file_size}, "
            f"more than {MAX_RATIO} times as many"
        )
    held = path.stat().st_size
    if member.compress_size > held:
        raise zipfile.BadZipFile(
            f"{member.filename} claims {member.compress_size} bytes, the whole file has {held}"
        )
    return member


class Node:
    """One dict of the archive and where it stands.

    Every method raises ``ValueError`` with the place, the key and the rule if the value is missing
    or is not what the method says.
    """

    def __init__(self, value: Any, place: str) -> None:
        self._place = place
        if not isinstance(value, dict):
            raise ValueError(f"{place}: is a {type(value).__name__}, expected a dict")
        self._values = value

    def fail(self, key: str, problem: str) -> NoReturn:
        """Raise the ``ValueError`` for a key of this node."""
        raise ValueError(f"{self._place}: {key!r} {problem}")

    def child(self, key: str) -> Node:
        """Return the dict under ``key``."""
        return Node(self._get(key), f"{self._place}, {key}")

    def children(self, key: str, limit: int) -> list[Node]:
        """Return the list of dicts under ``key``, at most ``limit`` of them."""
        values = self._get(key)
        if not isinstance(values, list) or not 1 <= len(values) <= limit:
            self.fail(key, f"must be a list of 1 to {limit} dicts")
        return [Node(value, f"{self._place}, {key}[{i}]") for i, value in enumerate(values)]

    def integer(self, key: str, low: int, high: int) -> int:
        """Return an integer in [low, high]."""
        value = self._get(key)
        if type(value) is not int or not low <= value <= high:
            self.fail(key, f"is {_short(value)}, expected an integer in [{low}, {high}]")
        return value

    def pair(self, key: str, limit: int) -> tuple[int, int]:
        """Return (height, width), two numbers of 1 to ``limit`` or one that stands for both."""
        value = self._get(key)
        both = (value, value) if type(value) is int else value
        if (
            not isinstance(both, tuple | list)
            or len(both) != 2
            or not all(type(n) is int and 1 <= n <= limit for n in both)
        ):
            self.fail(key, f"is {_short(value)}, expected one or two numbers from 1 to {limit}")
        return both[0], both[1]

    def quantization(self, prefix: str) -> tuple[float, int]:
        """Return (scale, zero point) stored under ``prefix_scale`` and ``prefix_zero``."""
        key = f"{prefix}_scale"
        scale = self._number(key)
        if type(scale) is not float or not math.isfinite(scale) or not 1e-30 < scale < 1e30:
            self.fail(key, f"is {_short(scale)}, expected a positive number")
        key = f"{prefix}_zero"
        zero = self._number(key)
        if type(zero) is not int or not -128 <= zero <= 127:
            self.fail(key, f"is {_short(zero)}, expected an integer in [-128, 127]")
        return scale, zero

    def _number(self, key: str) -> Any:
        """Return a value; an array of one number is that number."""
        value = self._get(key)
        array = value.array if isinstance(value, PickledArray) else None
        return array.item() if array is not None and array.size == 1 else value

    def check_activation(self, zero_point: int) -> None:
        """Refuse an activation that the int8 range of the output does not already contain."""
        activation = self._values.get("act")
        if activation is None or (activation in ("relu", "relu6") and zero_point == -128):
            return
        self.fail(
            "act",
            f"is {_short(activation)}, but activations are part of the int8 range in this format: "
            "use relu or relu6 with 'y_zero' -128, or none",
        )

    def has(self, key: str) -> bool:
        """Whether the key is there and not ``None``."""
        return self._values.get(key) is not None

    def array(self, key: str, dtype: Any, shape: tuple[int, ...]) -> Array:
        """Return a copy of an array with exactly this dtype and shape.

        A float32 array may be stored as float64, int32 as int64; float32 must be positive.
        """
        value = self._get(key)
        array = value.array if isinstance(value, PickledArray) else None
        if array is None:
            self.fail(key, f"is a {type(value).__name__}, expected an array")
        wider = _WIDER.get(np.dtype(dtype))
        if array.dtype not in (np.dtype(dtype), wider) or array.shape != shape:
            self.fail(
                key,
                f"is {array.dtype} of shape {array.shape}, expected {np.dtype(dtype)} of {shape}",
            )
        if array.dtype == np.int64 and np.any(array != array.astype(np.int32)):
            self.fail(key, "holds values beyond int32")
        if dtype == np.float32:
            array = array.astype(np.float32)
            if not np.all(np.isfinite(array) & (array > 0)):
                self.fail(key, "must be positive and finite")
        return array.astype(dtype)

    def _get(self, key: str) -> Any:
        if key not in self._values:
            self.fail(key, "is missing; this is not a tiny-training network")
        return self._values[key]


def _short(value: Any) -> str:
    text = repr(value) if isinstance(value, int | float | str) else f"a {type(value).__name__}"
    return text[:60]


def read(path: str | Path, *, resolution: int = 128) -> Graph:
    """Read a tiny-training archive, for images of ``resolution`` pixels a side (32 to 512).

    Layers are ``first_conv``, ``b0.depthwise``, ``b0.pointwise2``, ``b1.pointwise1``, ...,
    ``b3.residual`` where a residual has a convolution, ``classifier``, and the ops ``b2.add``, ...,
    ``avgpool``. The int8 input is pixel - 128. Blocks: ``B1`` to ``B4`` (``first_conv`` and all
    ``pointwise1`` in four groups), ``paper14`` (those layers, where there are 14 as in the paper's
    MCUNet), ``head`` and ``all``. One ValueError names every layer that is wrong.
    """
    resolution = checked_range("resolution", resolution, 32, 512)
    path = Path(path)
    archive = Node(read_pickle(path), path.name)
    try:
        graph = _NetworkBuilder(resolution).build(archive, path.name)
    except ValueError as error:
        if path.name in str(error):
            raise
        raise ValueError(f"{path.name}: {error}") from None
    check_limits(graph, path.name)
    return graph


@dataclass
class _NetworkBuilder:
    resolution: int
    tensors: list[Tensor] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    weights_left: int = field(default_factory=lambda: _MOST_WEIGHTS)

    def build(self, archive: Node, source: str) -> Graph:
        first = archive.child("first_conv")
        scale, zero_point = first.child("params").quantization("x")
        size, channels = self.resolution, first.integer("in_channel", 1, 4)
        self.tensors.append(Tensor("input", size, size, channels, scale, zero_point))
        current = self._layer("first_conv", first, 0)
        for number, block in enumerate(archive.children("blocks", _MAX_BLOCKS)):
            current = self._block(f"b{number}", block, current)
        if archive.has("feature_mix"):
            current = self._layer("feature_mix", archive.child("feature_mix"), current)
        head = archive.child("classifier")
        current = self._layer("classifier", head, self._average_pool(head, current))
        if self.problems:
            raise ValueError("; ".join(self.problems))
        pixels = raw_pixels(self.tensors[0])
        return Graph(
            tensors=self.tensors,
            ops=self.ops,
            input=0,
            output=current,
            input_mean=pixels.mean,
            input_std=pixels.std,
            blocks=self._blocks(),
            metadata={"source": f"tiny-training archive {printable(source)}"},
        )

    def _block(self, name: str, block: Node, source: int) -> int:
        if block.has("se"):
            block.fail(
                "se", "is set: squeeze-and-excitation is not supported; use a network without"
            )
        current = source
        for part in ("pointwise1", "depthwise", "pointwise2"):
            if block.has(part):
                current = self._layer(f"{name}.{part}", block.child(part), current)
        if not block.has("residual"):
            return current
        residual = block.child("residual")
        params = residual.child("params")
        other = source
        if residual.has("kernel_size"):
            other = self._layer(f"{name}.residual", residual, source)
            quantization = params.quantization("out")
        else:
            self._check_link(f"{name}.add", params.quantization("x"), source)
            quantization = params.quantization("y")
        first, second = self.tensors[other].shape, self.tensors[current].shape
        if first != second:
            residual.fail("params", f"adds {first} to {second}; shapes must agree")
        target = self._tensor(f"{name}.add", *second, quantization)
        self.ops.append(Op("add", f"{name}.add", (other, current), target))
        return target

    def _layer(self, name: str, node: Node, source: int) -> int:
        """Add a convolution; if it is wrong, note that and go on with its declared output."""
        try:
            return self._convolution(name, node, source)
        except ValueError as error:
            self.problems.append(str(error))
        try:
            height, width, _channels = self.tensors[source].shape
            stride = node.pair("stride", _MAX_STRIDE)
            size = (-(-height // stride[0]), -(-width // stride[1]))
            quantization = node.child("params").quantization("y")
            return self._tensor(
                name, *size, node.integer("out_channel", 1, MOST_CHANNELS), quantization
            )
        except ValueError:
            raise ValueError("; ".join(self.problems)) from None

    def _convolution(self, name: str, node: Node, source: int) -> int:
        params = node.child("params")
        node.check_activation(params.quantization("y")[1])
        height, width, in_channels = self.tensors[source].shape
        out_channels = node.integer("out_channel", 1, MOST_CHANNELS)
        kernel = node.pair("kernel_size", _MAX_KERNEL)
        stride = node.pair("stride", _MAX_STRIDE)
        groups = node.integer("groups", 1, MOST_CHANNELS)
        if in_channels % groups or out_channels % groups:
            node.fail("groups", f"{groups} must divide {in_channels} and {out_channels} channels")
        inner = in_channels // groups
        stored = params.array("weight", np.int8, (out_channels, inner, *kernel))
        kind, weights = self._weights(node, stored, groups)
        self._check_link(name, params.quantization("x"), source)
        padding = ((kernel[0] - 1) // 2, (kernel[1] - 1) // 2)
        rows, columns = output_size((height, width), kernel, stride, (*padding, *padding))
        if min(rows, columns) < 1:
            node.fail("kernel_size", f"{kernel} is larger than the {height}x{width} it is used on")
        target = self._tensor(name, rows, columns, out_channels, params.quantization("y"))
        scales = params.array("w_scales", np.float32, (out_channels,))
        top, bottom = _sides(height, rows, kernel[0], stride[0])
        left, right = _sides(width, columns, kernel[1], stride[1])
        self.ops.append(
            Op(
                kind,
                name,
                (source,),
                target,
                kernel=kernel,
                stride=stride,
                padding=(top, left, bottom, right),
                weights=weights,
                bias=params.array("bias", np.int32, (out_channels,)),
                weight_scales=matching_weight_scales(
                    scales, params.quantization("x")[0], params.quantization("y")[0]
                ),
            )
        )
        return target

    def _weights(self, node: Node, stored: Array, groups: int) -> tuple[OpKind, Int8Array]:
        """Return the kind of op and its weights, (out, in / groups, h, w) in its own order."""
        self.weights_left -= stored.size * groups if stored.shape[1] > 1 or groups == 1 else 0
        if self.weights_left < 0:
            node.fail("groups", f"{groups}: all weights with zeros for groups pass {_MOST_WEIGHTS}")
        return grouped_kernel(stored.transpose(0, 2, 3, 1), groups)

    def _average_pool(self, head: Node, source: int) -> int:
        tensor = self.tensors[source]
        quantization = head.child("params").quantization("x")
        target = self._tensor("avgpool", 1, 1, tensor.channels, quantization)
        self._check_link("avgpool", quantization, source)
        self.ops.append(Op("mean", "avgpool", (source,), target))
        return target

    def _blocks(self) -> dict[str, list[int]]:
        layers = [i for i, op in enumerate(self.ops) if is_layer(op)]
        expanding = [i for i in layers if self.ops[i].name.endswith(("first_conv", ".pointwise1"))]
        # A network of other blocks has nothing that expands but its stem.
        blocks = consecutive_blocks(expanding if len(expanding) > 1 else layers[:-1])
        if len(expanding) == _PAPER_LAYERS:
            blocks["paper14"] = expanding
        blocks["head"] = layers[-1:]
        blocks["all"] = layers
        return blocks

    def _tensor(
        self, name: str, height: int, width: int, channels: int, quantization: tuple[float, int]
    ) -> int:
        self.tensors.append(Tensor(name, height, width, channels, *quantization))
        return len(self.tensors) - 1

    def _check_link(self, name: str, quantization: tuple[float, int], source: int) -> None:
        tensor = self.tensors[source]
        if not tensor.is_quantized_as(*quantization):
            raise ValueError(
                f"{name}: expects its input with scale and zero point {quantization}, but "
                f"{tensor.name} gives {(tensor.scale, tensor.zero_point)}; the file contradicts "
                "itself"
            )


def _sides(size: int, output: int, kernel: int, stride: int) -> tuple[int, int]:
    """Return the rows before and after: (k-1)/2, then the rest that the output size needs."""
    before = (kernel - 1) // 2
    return before, max(0, (output - 1) * stride + kernel - size - before)


def matching_weight_scales(
    weight_scales: FloatArray, input_scale: float, output_scale: float
) -> FloatArray:
    """Move weight scales by a unit or two in the last place where that makes the layer exact.

    The core computes ``float32(float32(s_x * s_w) / s_y)`` from float32 values. A source that
    keeps ``s_x`` and ``s_y`` in double precision and rounds ``s_x * s_w / s_y`` once can differ in
    the last bit, which moves a result that lies on a rounding tie.

    With the nearest scales, at most two units away, the core's product equals the source's; they
    are unchanged where there are none so near. ``input_scale`` and ``output_scale`` are ``s_x`` and
    ``s_y`` of the source.
    """
    wanted = (input_scale * weight_scales.astype(np.float64) / output_scale).astype(np.float32)
    result = weight_scales.copy()
    open_channels = np.ones(len(wanted), bool)
    up, down = weight_scales.copy(), weight_scales.copy()
    for _step in range(_MAX_STEPS + 1):
        for candidate in (up, down):
            product = (np.float32(input_scale) * candidate) / np.float32(output_scale)
            hit = open_channels & (product == wanted)
            result[hit] = candidate[hit]
            open_channels &= ~hit
        up = np.nextafter(up, np.float32(np.inf))
        down = np.nextafter(down, np.float32(0))
    return result
