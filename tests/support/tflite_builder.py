"""Writes small .tflite files for the tests of the importer."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pmt.formats.tflite import importer
from pmt.formats.tflite.exporter import Flatbuffer
from pmt.formats.tflite.file import OPTIONS

SAME, VALID = 0, 1
_OPTION_TABLES = {
    **{kind: table for kind, (table, _fields) in OPTIONS.items()},
    **dict.fromkeys(("MEAN", "REDUCE_MAX"), "ReducerOptions"),
    "SOFTMAX": "SoftmaxOptions",
    "SHAPE": "ShapeOptions",
    "SQUEEZE": "SqueezeOptions",
}


def ramp(*shape: int) -> np.ndarray:
    """Weights that all differ, as int8."""
    return (np.arange(np.prod(shape)) % 251 - 125).astype(np.int8).reshape(shape)


def saved(folder: Path, data: bytes) -> Path:
    """Write ``net.tflite``."""
    path = folder / "net.tflite"
    path.write_bytes(data)
    return path


def refused(folder: Path, data: bytes) -> str:
    """Return why a file is refused."""
    with pytest.raises(ValueError, match=r"^net\.tflite: ") as caught:
        importer.read(saved(folder, data))
    return str(caught.value)


@dataclass
class TfliteBuilder:
    """Collects tensors and operators; :meth:`bytes` is the file."""

    tensors: list[dict[str, Any]] = field(default_factory=list)
    ops: list[tuple[str, list[int], list[int], dict[str, int]]] = field(default_factory=list)

    def activation(
        self,
        *shape: int,
        scale: float = 0.5,
        zero: int = 0,
        dtype: str = "INT8",
        name: str = "",
        signature: tuple[int, ...] = (),
    ) -> int:
        index = self._tensor(shape, dtype, [scale], [zero], 0, None, name)
        self.tensors[index]["signature"] = signature
        return index

    def sizes(self, *shape: int) -> int:
        """A tensor of computed sizes."""
        return self._tensor(shape, "INT32", [], [], 0, None, "")

    def constant(
        self,
        array: np.ndarray,
        *,
        scales: list[float] = (),  # type: ignore[assignment]
        zero: int = 0,
        axis: int = 0,
        name: str = "",
    ) -> int:
        dtype = array.dtype.name.upper()
        zeros = [zero] * len(scales)
        return self._tensor(array.shape, dtype, list(scales), zeros, axis, array.tobytes(), name)

    def _tensor(self, shape, dtype, scales, zeros, axis, data, name) -> int:  # type: ignore[no-untyped-def]
        stored = {"shape": shape, "dtype": dtype, "scales": scales, "zeros": zeros, "axis": axis}
        name = name or f"tensor{len(self.tensors)}"
        self.tensors.append({**stored, "data": data, "name": name})
        return len(self.tensors) - 1

    def op(self, kind: str, inputs: list[int], outputs: list[int], **options: Any) -> None:
        self.ops.append((kind, inputs, outputs, options))

    def bytes(self, inputs: list[int], outputs: list[int], *, subgraphs: int = 1) -> bytes:
        b = Flatbuffer()
        kinds = sorted({op[0] for op in self.ops})
        codes = [_operator_code(b, *kind.split(maxsplit=1)) for kind in kinds]  # "CUSTOM ethos-u"
        buffers = [b.table("Buffer")]
        for tensor in self.tensors:
            if tensor["data"] is not None:
                data = b.builder.CreateByteVector(tensor["data"])
                buffers.append(b.table("Buffer", Data=data))
                tensor["buffer"] = len(buffers) - 1
        tensors = [_write_tensor(b, tensor) for tensor in self.tensors]
        ops = [_write_op(b, kinds.index(op[0]), *op) for op in self.ops]
        graph = b.table(
            "SubGraph",
            Tensors=b.offsets(tensors),
            Operators=b.offsets(ops),
            Inputs=b.integers(inputs),
            Outputs=b.integers(outputs),
        )
        graphs = b.offsets([graph] * subgraphs)
        ends = {"OperatorCodes": b.offsets(codes), "Buffers": b.offsets(buffers)}
        return b.finished(b.table("Model", Version=3, Subgraphs=graphs, **ends))


def _operator_code(b: Flatbuffer, kind: str, custom: str = "") -> int:
    code = int(getattr(b.schema.BuiltinOperator, kind))
    named = {"CustomCode": b.builder.CreateString(custom)} if custom else {}
    return b.table("OperatorCode", BuiltinCode=code, DeprecatedBuiltinCode=code, **named)


def _write_tensor(b: Flatbuffer, tensor: dict[str, Any]) -> int:
    shape, name = b.integers(tensor["shape"]), b.builder.CreateString(tensor["name"])
    quantization = b.table(
        "QuantizationParameters",
        Scale=b.builder.CreateNumpyVector(np.array(tensor["scales"], np.float32)),
        ZeroPoint=b.builder.CreateNumpyVector(np.array(tensor["zeros"], np.int64)),
        QuantizedDimension=tensor["axis"],
    )
    signature = tensor.get("signature") or ()
    more = {"ShapeSignature": b.integers(signature)} if signature else {}
    kind = int(getattr(b.schema.TensorType, tensor["dtype"]))
    more |= {"Type": kind, "Buffer": tensor.get("buffer", 0), "Quantization": quantization}
    return b.table("Tensor", Shape=shape, Name=name, **more)


def _write_op(
    b: Flatbuffer, code: int, kind: str, inputs: Any, outputs: Any, options: dict[str, Any]
) -> int:
    fields = {"Inputs": b.integers(inputs), "Outputs": b.integers(outputs), "OpcodeIndex": code}
    if kind in _OPTION_TABLES:
        table = _OPTION_TABLES[kind]
        fields["BuiltinOptionsType"] = int(getattr(b.schema.BuiltinOptions, table))
        stored = {k: b.integers(v) if isinstance(v, list) else v for k, v in options.items()}
        fields["BuiltinOptions"] = b.table(table, **stored)
    return b.table("Operator", **fields)
