"""A ``.tflite`` flatbuffer as plain Python values, read once and defensively.

Flatbuffers are offsets into the file; a damaged one can point anywhere. Everything the importer
needs is copied out here, with sizes bounded, so that later code never meets the flatbuffer again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_FILE_BYTES = 256 * 2**20
_MAX_RECORDS = 20_000  # tensors, ops, dimensions: far above any network for a microcontroller
_IDENTIFIER = b"TFL3"


@dataclass(frozen=True)
class FileTensor:
    """One tensor: ``data`` is ``None`` for activations.

    ``scales`` and ``zero_points`` are empty for a tensor that is not quantised.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    scales: npt.NDArray[np.float32]
    zero_points: npt.NDArray[np.int64]
    quantized_dimension: int
    data: npt.NDArray[Any] | None


@dataclass(frozen=True)
class FileOp:
    """One operator; a missing optional input is -1. ``options`` holds the fields of its table."""

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: dict[str, int]


@dataclass(frozen=True)
class FileModel:
    """The only subgraph of a file."""

    tensors: list[FileTensor]
    ops: list[FileOp]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


_ITEM_TYPES = {"INT8": "i1", "UINT8": "u1", "INT32": "<i4", "INT64": "<i8", "FLOAT32": "<f4"}

_WINDOW = ("Padding", "StrideH", "StrideW", "FusedActivationFunction")
_OPTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "CONV_2D": ("Conv2DOptions", (*_WINDOW, "DilationHFactor", "DilationWFactor")),
    "DEPTHWISE_CONV_2D": (
        "DepthwiseConv2DOptions",
        (*_WINDOW, "DilationHFactor", "DilationWFactor"),
    ),
    "FULLY_CONNECTED": (
        "FullyConnectedOptions",
        ("FusedActivationFunction", "WeightsFormat"),
    ),
    "ADD": ("AddOptions", ("FusedActivationFunction",)),
    "AVERAGE_POOL_2D": ("Pool2DOptions", (*_WINDOW, "FilterHeight", "FilterWidth")),
    "MAX_POOL_2D": ("Pool2DOptions", (*_WINDOW, "FilterHeight", "FilterWidth")),
}


def read_file(path: Path) -> FileModel:
    """Copy the network out of a ``.tflite`` file.

    Parameters
    ----------
    path : pathlib.Path
        The file.

    Returns
    -------
    FileModel
        Tensors, operators, inputs and outputs of its subgraph.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ImportError
        If the package ``tflite`` is missing.
    ValueError
        If the file is damaged, larger than 256 MiB, or has several subgraphs.
    """
    try:
        import tflite
    except ImportError:
        raise ImportError(
            'reading .tflite needs the package tflite: pip install "poor-mans-training[tflite]"'
        ) from None
    if not path.is_file():
        raise FileNotFoundError(f"path={str(path)!r}: there is no such file")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise ValueError(f"{path.name}: is larger than the limit of {MAX_FILE_BYTES} bytes")
    data = path.read_bytes()
    if data[4:8] != _IDENTIFIER:
        raise ValueError(f"{path.name}: is not a .tflite file, it has no {_IDENTIFIER.decode()!r}")
    try:
        return _copy_model(tflite, data)
    except Exception as error:  # a wild offset raises nearly anything
        raise ValueError(f"{path.name}: is damaged or truncated: {error}") from None


def _copy_model(tflite: Any, data: bytes) -> FileModel:
    model = tflite.Model.GetRootAs(data, 0)
    if model.SubgraphsLength() != 1:
        raise ValueError(f"it has {model.SubgraphsLength()} subgraphs, exactly one is supported")
    graph = model.Subgraphs(0)
    kinds = [
        _op_kind(tflite, model.OperatorCodes(i))
        for i in range(_bounded(model.OperatorCodesLength(), "operator codes"))
    ]
    budget = _Budget(len(data))
    tensors = [
        _copy_tensor(tflite, model, graph.Tensors(i), budget)
        for i in range(_bounded(graph.TensorsLength(), "tensors"))
    ]
    ops = [
        _copy_op(tflite, kinds, graph.Operators(i))
        for i in range(_bounded(graph.OperatorsLength(), "operators"))
    ]
    inputs, outputs = _indices(graph, "Inputs"), _indices(graph, "Outputs")
    for index in (*inputs, *outputs, *(i for op in ops for i in (*op.inputs, *op.outputs))):
        if not -1 <= index < len(tensors):
            raise ValueError(f"tensor {index} does not exist")
    return FileModel(tensors, ops, inputs, outputs)


class _Budget:
    """Bytes that may still be copied: a sound file stores no byte twice."""

    def __init__(self, bytes_left: int) -> None:
        self._left = bytes_left

    def take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise ValueError("its tensors claim more bytes than the file has")


def _bounded(count: int, what: str) -> int:
    if count > _MAX_RECORDS:
        raise ValueError(f"{count} {what} are more than the limit of {_MAX_RECORDS}")
    return count


def _op_kind(tflite: Any, code: Any) -> str:
    # Files older than schema 3a keep the kind in an int8 field, later ones in both.
    number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    if code.CustomCode():
        return f"CUSTOM {code.CustomCode().decode(errors='replace')[:40]}"
    return _enum_name(tflite.BuiltinOperator, number)


def _enum_name(enum: Any, number: int) -> str:
    for name, value in vars(enum).items():
        if not name.startswith("_") and value == number:
            return str(name)
    return f"number {number}"


def _indices(table: Any, field: str) -> tuple[int, ...]:
    length = _bounded(getattr(table, f"{field}Length")(), field.lower())
    return tuple(int(getattr(table, field)(i)) for i in range(length))


def _copy_tensor(tflite: Any, model: Any, tensor: Any, budget: _Budget) -> FileTensor:
    dtype = _enum_name(tflite.TensorType, tensor.Type())
    shape = _indices(tensor, "Shape")
    quantisation = tensor.Quantization()
    count = 0 if quantisation is None else quantisation.ScaleLength()
    zeros = 0 if quantisation is None else quantisation.ZeroPointLength()
    budget.take(4 * count + 8 * zeros)
    return FileTensor(
        name=(tensor.Name() or b"").decode(errors="replace"),
        shape=shape,
        dtype=dtype,
        scales=np.array([quantisation.Scale(i) for i in range(count)], np.float32),
        zero_points=np.array([quantisation.ZeroPoint(i) for i in range(zeros)], np.int64),
        quantized_dimension=0 if quantisation is None else int(quantisation.QuantizedDimension()),
        data=_copy_data(model, tensor, dtype, shape, budget),
    )


def _copy_data(
    model: Any, tensor: Any, dtype: str, shape: tuple[int, ...], budget: _Budget
) -> npt.NDArray[Any] | None:
    if tensor.Buffer() >= model.BuffersLength():
        raise ValueError(f"buffer {tensor.Buffer()} does not exist")
    buffer = model.Buffers(tensor.Buffer())
    if buffer.DataLength() == 0:
        return None
    budget.take(buffer.DataLength())
    raw = np.asarray(buffer.DataAsNumpy(), np.uint8).tobytes()
    if dtype not in _ITEM_TYPES:
        return np.frombuffer(raw, np.uint8)
    array = np.frombuffer(raw, _ITEM_TYPES[dtype])
    if any(size < 0 for size in shape) or array.size != int(np.prod(shape, dtype=np.float64)):
        raise ValueError(f"a tensor of shape {shape} has {array.size} values")
    return array.reshape(shape)


def _copy_op(tflite: Any, kinds: list[str], op: Any) -> FileOp:
    if op.OpcodeIndex() >= len(kinds):
        raise ValueError(f"operator code {op.OpcodeIndex()} does not exist")
    kind = kinds[op.OpcodeIndex()]
    options: dict[str, int] = {}
    if kind in _OPTIONS:
        table, fields = _OPTIONS[kind]
        reader = getattr(tflite, table)()
        stored = op.BuiltinOptions()
        if stored is not None:
            if _enum_name(tflite.BuiltinOptions, op.BuiltinOptionsType()) != table:
                raise ValueError(f"{kind} does not carry {table}")
            reader.Init(stored.Bytes, stored.Pos)
            options = {field: int(getattr(reader, field)()) for field in fields}
        elif kind not in ("ADD", "FULLY_CONNECTED"):
            raise ValueError(f"{kind} has no {table}")
    return FileOp(kind, _indices(op, "Inputs"), _indices(op, "Outputs"), options)
