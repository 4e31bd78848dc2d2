"""A ``.tflite`` flatbuffer as plain Python values, read once and defensively.

Flatbuffers are offsets into the file; a damaged one can point anywhere. Everything the importer
needs is copied out here, with sizes bounded, so that later code never meets the flatbuffer again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pmt._util.arrays import Array, FloatArray, Int64Array
from pmt._util.extras import import_extra
from pmt.formats.reading import require_file

CONVERT_INT8 = (
    "convert the float model again with full-integer int8 quantization: a representative_dataset "
    "and supported_ops = [TFLITE_BUILTINS_INT8]"
)
MAX_FILE_BYTES = 256 * 2**20
_MAX_RECORDS = 20_000  # tensors, ops, buffers: far above any network for a microcontroller
_MAX_RANK = 8
_MAX_OPERANDS = 256  # of one operator
_IDENTIFIER = b"TFL3"
_ITEM_TYPES = {"INT8": "i1", "UINT8": "u1", "INT32": "<i4", "INT64": "<i8", "FLOAT32": "<f4"}

_WINDOW = ("Padding", "StrideH", "StrideW", "FusedActivationFunction")
_DILATED = (*_WINDOW, "DilationHFactor", "DilationWFactor")
_POOL = ("Pool2DOptions", (*_WINDOW, "FilterHeight", "FilterWidth"))
_MASKS = ("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask")
OPTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "CONV_2D": ("Conv2DOptions", _DILATED),
    "DEPTHWISE_CONV_2D": ("DepthwiseConv2DOptions", (*_DILATED, "DepthMultiplier")),
    "FULLY_CONNECTED": ("FullyConnectedOptions", ("FusedActivationFunction", "WeightsFormat")),
    "ADD": ("AddOptions", ("FusedActivationFunction",)),
    "SUB": ("SubOptions", ("FusedActivationFunction",)),
    "MUL": ("MulOptions", ("FusedActivationFunction",)),
    "AVERAGE_POOL_2D": _POOL,
    "MAX_POOL_2D": _POOL,
    "STRIDED_SLICE": ("StridedSliceOptions", _MASKS),
    "PACK": ("PackOptions", ("Axis",)),
    "GATHER": ("GatherOptions", ("Axis",)),
    "CONCATENATION": ("ConcatenationOptions", ("Axis", "FusedActivationFunction")),
    "REDUCE_PROD": ("ReducerOptions", ("KeepDims",)),
}
# Without their options these mean nothing; the others have defaults.
_NEEDS_OPTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D")


class _Damaged(Exception):
    """The damage of a file, in words for the user."""


def place(_: str, operators: list[FileOp]) -> str:
    """Return the numbers and kinds of operators as a message begins with them."""
    if not operators:
        return ""
    if len(operators) == 1:
        return f"op {operators[0].number} {operators[0].kind}: "
    kinds = ", ".join(sorted({op.kind for op in operators}))
    return f"ops {_ranges(sorted(op.number for op in operators))} ({kinds}): "


def _ranges(numbers: list[int]) -> str:
    """Return ``1-3, 5`` for 1, 2, 3, 5."""
    breaks = [i + 1 for i, (a, b) in enumerate(pairwise(numbers)) if b != a + 1]
    runs = [numbers[a:b] for a, b in pairwise([0, *breaks, len(numbers)])]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


@dataclass(frozen=True)
class FileTensor:
    """One tensor: ``data`` is ``None`` for activations, a view of the file for constants.

    ``scales`` and ``zero_points`` are empty for a tensor that is not quantized. ``signature`` is
    the shape with -1 where the converter did not know a size; ``storage`` says how its values are
    kept if not as a plain array: ``sparse``, ``variable`` or ``outside of the flatbuffer``.
    Quantized uint8 is read as int8, values and zero points 128 lower; ``is_unsigned`` says so.
    """

    name: str
    shape: tuple[int, ...]
    signature: tuple[int, ...]
    dtype: str
    scales: FloatArray
    zero_points: Int64Array
    quantized_dimension: int
    data: Array | None
    storage: str = ""
    is_unsigned: bool = False

    @property
    def is_dynamic(self) -> bool:
        """Whether a size other than the batch was unknown to the converter."""
        return -1 in self.signature[1:]


@dataclass(frozen=True)
class FileOp:
    """One operator, its number in the file, and its table's fields; a missing input is -1."""

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: dict[str, int] = field(default_factory=dict)
    number: int = -1


@dataclass(frozen=True)
class FileModel:
    """A file's first subgraph, how many there are, its size, and pmt's metadata entry, ``note``."""

    tensors: list[FileTensor]
    ops: list[FileOp]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    subgraphs: int
    file_bytes: int
    note: bytes = b""

    def is_constant(self, index: int) -> bool:
        """Whether tensor ``index`` exists and has its values in the file."""
        return index >= 0 and self.tensors[index].data is not None


def read_file(path: Path) -> FileModel:
    """Copy the first subgraph of a file; ValueError if that is damaged, or larger than 256 MiB."""
    tflite = import_extra("tflite", "reading .tflite needs the package tflite", "tflite")
    require_file(path)
    if path.stat().st_size > MAX_FILE_BYTES:
        raise ValueError(f"{path.name}: is larger than the limit of {MAX_FILE_BYTES} bytes")
    data = path.read_bytes()
    if data[4:8] != _IDENTIFIER:
        raise ValueError(f"{path.name}: is not a .tflite file, it has no {_IDENTIFIER.decode()!r}")
    try:
        return _copy_model(tflite, data)
    except _Damaged as error:
        raise ValueError(f"{path.name}: is damaged or truncated: {error}") from None
    except Exception as error:  # a wild offset raises nearly anything
        raise ValueError(
            f"{path.name}: is damaged or truncated: its {len(data):,} bytes are not a whole "
            "flatbuffer; copy or convert it again"
        ) from error


def _copy_model(tflite: Any, data: bytes) -> FileModel:
    model = tflite.Model.GetRootAs(data, 0)
    if model.SubgraphsLength() < 1:
        raise _Damaged("it has no subgraph")
    graph = model.Subgraphs(0)
    budget = _Budget(len(data))
    kinds = [
        _op_kind(tflite, model.OperatorCodes(i), budget)
        for i in range(_bounded(model.OperatorCodesLength(), "operator codes"))
    ]
    tensors = [
        _copy_tensor(tflite, model, graph.Tensors(i), budget)
        for i in range(_bounded(graph.TensorsLength(), "tensors"))
    ]
    ops = [
        _copy_op(tflite, kinds, graph.Operators(i), i)
        for i in range(_bounded(graph.OperatorsLength(), "operators"))
    ]
    inputs = _indices(graph, "Inputs", _MAX_OPERANDS)
    outputs = _indices(graph, "Outputs", _MAX_OPERANDS)
    for index in (*inputs, *outputs, *(i for op in ops for i in (*op.inputs, *op.outputs))):
        if not -1 <= index < len(tensors):
            raise _Damaged(f"tensor {index} does not exist")
    return FileModel(
        tensors, ops, inputs, outputs, model.SubgraphsLength(), len(data), _note(model)
    )


def _note(model: Any) -> bytes:
    for i in range(_bounded(model.MetadataLength(), "metadata entries")):
        entry = model.Metadata(i)
        if entry.Name() == b"pmt" and entry.Buffer() < model.BuffersLength():
            return bytes(np.asarray(model.Buffers(entry.Buffer()).DataAsNumpy(), np.uint8))
    return b""


class _Budget:
    """Bytes that may still be copied: a sound file hardly stores anything twice."""

    def __init__(self, file_bytes: int) -> None:
        self._left = 2 * file_bytes

    def take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise _Damaged("its names and scales claim more bytes than the file has")


def _bounded(count: int, what: str, limit: int = _MAX_RECORDS) -> int:
    if count > limit:
        raise _Damaged(f"{count} {what} are more than the limit of {limit}")
    return count


def _text(stored: bytes | None, budget: _Budget) -> str:
    budget.take(len(stored or b""))
    return (stored or b"").decode(errors="replace")[:256].replace("\0", "?")


def _op_kind(tflite: Any, code: Any, budget: _Budget) -> str:
    # Files older than schema 3a keep the kind in an int8 field, later ones in both.
    number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    custom = _text(code.CustomCode(), budget)
    if custom:
        return f"CUSTOM {custom[:40]}"
    return _enum_name(tflite.BuiltinOperator, number)


@lru_cache(maxsize=1024)
def _enum_name(enum: Any, number: int) -> str:
    for name, value in vars(enum).items():
        if not name.startswith("_") and value == number:
            return str(name)
    return f"number {number}"


def _indices(table: Any, field: str, limit: int) -> tuple[int, ...]:
    length = _bounded(getattr(table, f"{field}Length")(), field.lower(), limit)
    return tuple(int(getattr(table, field)(i)) for i in range(length))


def _copy_tensor(tflite: Any, model: Any, tensor: Any, budget: _Budget) -> FileTensor:
    dtype = _enum_name(tflite.TensorType, tensor.Type())
    shape = _indices(tensor, "Shape", _MAX_RANK)
    quantization = tensor.Quantization()
    count = 0 if quantization is None else quantization.ScaleLength()
    zeros = 0 if quantization is None else quantization.ZeroPointLength()
    budget.take(4 * count + 8 * zeros)
    data, storage = _values(model, tensor, dtype, shape)
    found = FileTensor(
        name=_text(tensor.Name(), budget),
        shape=shape,
        signature=_indices(tensor, "ShapeSignature", _MAX_RANK),
        dtype=dtype,
        scales=np.array([quantization.Scale(i) for i in range(count)], np.float32),
        zero_points=np.array([quantization.ZeroPoint(i) for i in range(zeros)], np.int64),
        quantized_dimension=0 if quantization is None else int(quantization.QuantizedDimension()),
        data=data,
        storage=storage,
    )
    if dtype != "UINT8" or not count or storage:
        return found
    budget.take(0 if data is None else data.size)  # it is copied, and others may share it
    return _as_int8(found)


def _as_int8(tensor: FileTensor) -> FileTensor:
    """Return quantized uint8 values as int8, 128 lower: the same numbers."""
    zeros = tensor.zero_points if len(tensor.zero_points) else np.zeros(1, np.int64)
    data = None if tensor.data is None else (tensor.data ^ np.uint8(128)).view(np.int8)
    return replace(tensor, dtype="INT8", zero_points=zeros - 128, data=data, is_unsigned=True)


def _values(
    model: Any, tensor: Any, dtype: str, shape: tuple[int, ...]
) -> tuple[Array | None, str]:
    """Return a constant's values, views of the file, and how they are kept if not as an array."""
    if tensor.Buffer() >= model.BuffersLength():
        raise _Damaged(f"buffer {tensor.Buffer()} does not exist")
    buffer = model.Buffers(tensor.Buffer())
    raw = np.asarray(buffer.DataAsNumpy(), np.uint8) if buffer.DataLength() else None
    if tensor.Sparsity() is not None:
        return raw, "sparse"
    if tensor.IsVariable():
        return None, "variable"
    if raw is None:
        size = getattr(buffer, "Size", None)  # the package tflite 2.10 has no field
        # In files of more than 2 GB the bytes stand after the flatbuffer.
        outside = size is not None and size() > 1
        return (np.zeros(0, np.uint8), "outside of the flatbuffer") if outside else (None, "")
    if dtype not in _ITEM_TYPES:
        return raw, ""
    item = np.dtype(_ITEM_TYPES[dtype])
    expected = math.prod(shape) * item.itemsize
    if any(size < 0 for size in shape) or raw.size != expected:
        raise _Damaged(f"a {dtype} tensor of shape {shape} has {raw.size} bytes, not {expected}")
    return raw.view(item).reshape(shape), ""


def _copy_op(tflite: Any, kinds: list[str], op: Any, number: int) -> FileOp:
    if op.OpcodeIndex() >= len(kinds):
        raise _Damaged(f"operator code {op.OpcodeIndex()} does not exist")
    kind = kinds[op.OpcodeIndex()]
    inputs, outputs = (_indices(op, name, _MAX_OPERANDS) for name in ("Inputs", "Outputs"))
    return FileOp(kind, inputs, outputs, _copy_options(tflite, kind, op), number)


def _copy_options(tflite: Any, kind: str, op: Any) -> dict[str, int]:
    if kind not in OPTIONS:
        return {}
    table, fields = OPTIONS[kind]
    stored = op.BuiltinOptions()
    if stored is None:
        if kind in _NEEDS_OPTIONS:
            raise _Damaged(f"{kind} has no {table}")
        return {}
    if _enum_name(tflite.BuiltinOptions, op.BuiltinOptionsType()) != table:
        raise _Damaged(f"{kind} does not carry {table}")
    reader = getattr(tflite, table)()
    reader.Init(stored.Bytes, stored.Pos)
    return {field: int(getattr(reader, field)()) for field in fields}
