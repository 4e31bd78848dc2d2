"""Writes small .tflite files for the tests of the importer."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest
import tflite

from pmt.formats.tflite import importer

SAME, VALID = 0, 1


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
        self.tensors.append(
            {
                "shape": shape,
                "dtype": dtype,
                "scales": scales,
                "zeros": zeros,
                "axis": axis,
                "data": data,
                "name": name or f"tensor{len(self.tensors)}",
            }
        )
        return len(self.tensors) - 1

    def op(self, kind: str, inputs: list[int], outputs: list[int], **options: Any) -> None:
        self.ops.append((kind, inputs, outputs, options))

    def bytes(self, inputs: list[int], outputs: list[int], *, subgraphs: int = 1) -> bytes:
        b = flatbuffers.Builder(1024)
        kinds = sorted({op[0] for op in self.ops})
        codes = [
            _operator_code(b, *kind.split(maxsplit=1))  # "CUSTOM ethos-u"
            for kind in kinds
        ]
        buffers = [table(b, "Buffer")]
        for tensor in self.tensors:
            if tensor["data"] is not None:
                data = b.CreateByteVector(tensor["data"])
                buffers.append(table(b, "Buffer", Data=data))
                tensor["buffer"] = len(buffers) - 1
        tensors = [_write_tensor(b, tensor) for tensor in self.tensors]
        ops = [_write_op(b, kinds.index(op[0]), op) for op in self.ops]
        graph = table(
            b,
            "SubGraph",
            Tensors=offsets(b, tensors),
            Operators=offsets(b, ops),
            Inputs=_ints(b, inputs),
            Outputs=_ints(b, outputs),
        )
        model = table(
            b,
            "Model",
            Version=3,
            OperatorCodes=offsets(b, codes),
            Subgraphs=offsets(b, [graph] * subgraphs),
            Buffers=offsets(b, buffers),
        )
        b.Finish(model, b"TFL3")
        return bytes(b.Output())


def _operator_code(b: flatbuffers.Builder, kind: str, custom: str = "") -> int:
    code = int(getattr(tflite.BuiltinOperator, kind))
    named = {"CustomCode": b.CreateString(custom)} if custom else {}
    return table(b, "OperatorCode", BuiltinCode=code, DeprecatedBuiltinCode=code, **named)


def table(b: flatbuffers.Builder, kind: str, **fields: int) -> int:
    getattr(tflite, f"{kind}Start")(b)
    for name, value in fields.items():
        getattr(tflite, f"{kind}Add{name}")(b, value)
    return int(getattr(tflite, f"{kind}End")(b))


def offsets(b: flatbuffers.Builder, items: list[int]) -> int:
    b.StartVector(4, len(items), 4)
    for item in reversed(items):
        b.PrependUOffsetTRelative(item)
    return int(b.EndVector())


def _ints(b: flatbuffers.Builder, values: Any) -> int:
    return int(b.CreateNumpyVector(np.array(values, np.int32)))


def _write_tensor(b: flatbuffers.Builder, tensor: dict[str, Any]) -> int:
    shape, name = _ints(b, tensor["shape"]), b.CreateString(tensor["name"])
    quantization = table(
        b,
        "QuantizationParameters",
        Scale=b.CreateNumpyVector(np.array(tensor["scales"], np.float32)),
        ZeroPoint=b.CreateNumpyVector(np.array(tensor["zeros"], np.int64)),
        QuantizedDimension=tensor["axis"],
    )
    signature = tensor.get("signature") or ()
    more = {"ShapeSignature": _ints(b, signature)} if signature else {}
    return table(
        b,
        "Tensor",
        Shape=shape,
        **more,
        Type=int(getattr(tflite.TensorType, tensor["dtype"])),
        Buffer=tensor.get("buffer", 0),
        Name=name,
        Quantization=quantization,
    )


_OPTION_TABLES = {
    "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "FULLY_CONNECTED": "FullyConnectedOptions",
    "ADD": "AddOptions",
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "SOFTMAX": "SoftmaxOptions",
    "SUB": "SubOptions",
    "MUL": "MulOptions",
    "MEAN": "ReducerOptions",
    "REDUCE_MAX": "ReducerOptions",
    "REDUCE_PROD": "ReducerOptions",
    "STRIDED_SLICE": "StridedSliceOptions",
    "PACK": "PackOptions",
    "GATHER": "GatherOptions",
    "CONCATENATION": "ConcatenationOptions",
    "SHAPE": "ShapeOptions",
    "SQUEEZE": "SqueezeOptions",
}


def _write_op(b: flatbuffers.Builder, code: int, op: tuple[str, Any, Any, dict[str, int]]) -> int:
    kind, inputs, outputs, options = op
    fields = {"Inputs": _ints(b, inputs), "Outputs": _ints(b, outputs), "OpcodeIndex": code}
    if kind in _OPTION_TABLES:
        options_kind = _OPTION_TABLES[kind]
        fields["BuiltinOptionsType"] = int(getattr(tflite.BuiltinOptions, options_kind))
        stored = {k: _ints(b, v) if isinstance(v, list) else v for k, v in options.items()}
        fields["BuiltinOptions"] = table(b, options_kind, **stored)
    return table(b, "Operator", **fields)
