"""Collects the parts of a .tflite file and lays them out as a flatbuffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._util.extras import import_extra

__all__ = ["OPERATORS", "TfliteFile"]

# Each operator's first version that takes int8, and the table of its options.
OPERATORS = {
    "CONV_2D": (3, "Conv2DOptions"),
    "DEPTHWISE_CONV_2D": (3, "DepthwiseConv2DOptions"),
    "FULLY_CONNECTED": (4, "FullyConnectedOptions"),
    "ADD": (2, "AddOptions"),
    "MEAN": (2, "ReducerOptions"),
    "PAD": (2, "PadOptions"),
    "PADV2": (2, "PadV2Options"),
    "AVERAGE_POOL_2D": (2, "Pool2DOptions"),
    "MAX_POOL_2D": (2, "Pool2DOptions"),
    "RESHAPE": (1, "ReshapeOptions"),
    "MINIMUM": (2, "MaximumMinimumOptions"),
    "MAXIMUM": (2, "MaximumMinimumOptions"),
    "STRIDED_SLICE": (2, "StridedSliceOptions"),
    "CONCATENATION": (2, "ConcatenationOptions"),
}
_SCHEMA_VERSION = 3
_IDENTIFIER = b"TFL3"
_DATA_ALIGNMENT = 16  # of constants, as the schema asks
_SIGNATURE = "serving_default"  # the key that converters give


@dataclass(frozen=True)
class _Tensor:
    name: str
    shape: tuple[int, ...]
    dtype: str
    scales: npt.NDArray[np.float32]
    zero_point: int
    axis: int
    data: bytes | None


@dataclass(frozen=True)
class _Operator:
    kind: str
    inputs: Sequence[int]
    output: int
    options: dict[str, int]


class TfliteFile:
    """A .tflite file in the making; every method that adds a tensor returns its index."""

    def __init__(self) -> None:
        need = "writing .tflite needs the package tflite"
        self.schema: Any = import_extra("tflite", need, "tflite")
        self._builder: Any = import_extra("flatbuffers", need, "tflite").Builder(1 << 16)
        self._tensors: list[_Tensor] = []
        self._operators: list[_Operator] = []

    def activation(self, name: str, shape: tuple[int, ...], scale: float, zero_point: int) -> int:
        """Add an int8 activation; ``shape`` has the batch."""
        scales = np.array([scale], np.float32)
        return self._add(_Tensor(name, shape, "INT8", scales, zero_point, 0, None))

    def constant(
        self,
        name: str,
        values: npt.NDArray[Any],
        scales: npt.ArrayLike = (),
        *,
        zero_point: int = 0,
        axis: int = 0,
    ) -> int:
        """Add an int8 or int32 constant, with one scale or one for each index along ``axis``."""
        dtype = {"int8": "INT8", "int32": "INT32"}[values.dtype.name]
        data = np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()
        scales = np.asarray(scales, np.float32)
        return self._add(_Tensor(name, values.shape, dtype, scales, zero_point, axis, data))

    def operator(self, kind: str, inputs: Sequence[int], output: int, **options: int) -> None:
        """Add an operator; ``options`` are fields of its table, named as in the schema's API."""
        self._operators.append(_Operator(kind, inputs, output, options))

    def finish(self, source: int, output: int, description: str, metadata: bytes) -> bytes:
        """Lay everything out; equal parts give equal bytes.

        ``source`` and ``output`` are the tensors that the file takes and gives, ``description`` is
        for people, ``metadata`` is kept as the metadata entry ``pmt``.
        """
        b = self._builder
        kinds = sorted({operator.kind for operator in self._operators})
        payloads = [t.data for t in self._tensors if t.data is not None] + [metadata]
        buffers = [self._table("Buffer")] + [
            self._table("Buffer", Data=self._data(payload)) for payload in payloads
        ]
        codes = [self._operator_code(kind) for kind in kinds]
        graph = self._subgraph(kinds, source, output)
        entry = self._table("Metadata", Name=b.CreateString("pmt"), Buffer=len(payloads))
        signature = self._signature(source, output)
        model = self._table(
            "Model",
            Version=_SCHEMA_VERSION,
            OperatorCodes=self._offsets(codes),
            Subgraphs=self._offsets([graph]),
            Description=b.CreateString(description),
            Buffers=self._offsets(buffers),
            Metadata=self._offsets([entry]),
            SignatureDefs=self._offsets([signature]),
        )
        b.Finish(model, _IDENTIFIER)
        return bytes(b.Output())

    def _add(self, tensor: _Tensor) -> int:
        self._tensors.append(tensor)
        return len(self._tensors) - 1

    def _operator_code(self, kind: str) -> int:
        number = int(getattr(self.schema.BuiltinOperator, kind))
        version = OPERATORS[kind][0]
        # Readers of schemas before 3a look only at the deprecated field.
        return self._table(
            "OperatorCode", DeprecatedBuiltinCode=number, BuiltinCode=number, Version=version
        )

    def _subgraph(self, kinds: list[str], source: int, output: int) -> int:
        buffer = 0
        tensors = []
        for tensor in self._tensors:
            buffer += tensor.data is not None
            tensors.append(self._write_tensor(tensor, buffer if tensor.data is not None else 0))
        operators = [self._write_operator(o, kinds.index(o.kind)) for o in self._operators]
        return self._table(
            "SubGraph",
            Tensors=self._offsets(tensors),
            Inputs=self._integers([source]),
            Outputs=self._integers([output]),
            Operators=self._offsets(operators),
            Name=self._builder.CreateString("main"),
        )

    def _write_tensor(self, tensor: _Tensor, buffer: int) -> int:
        fields = {
            "Shape": self._integers(tensor.shape),
            "Type": int(getattr(self.schema.TensorType, tensor.dtype)),
            "Buffer": buffer,
            "Name": self._builder.CreateString(tensor.name),
        }
        if len(tensor.scales):
            zeros = np.full(len(tensor.scales), tensor.zero_point, np.int64)
            fields["Quantization"] = self._table(
                "QuantizationParameters",
                Scale=self._builder.CreateNumpyVector(tensor.scales),
                ZeroPoint=self._builder.CreateNumpyVector(zeros),
                QuantizedDimension=tensor.axis,
            )
        return self._table("Tensor", **fields)

    def _write_operator(self, operator: _Operator, code: int) -> int:
        table = OPERATORS[operator.kind][1]
        return self._table(
            "Operator",
            OpcodeIndex=code,
            Inputs=self._integers(operator.inputs),
            Outputs=self._integers([operator.output]),
            BuiltinOptionsType=int(getattr(self.schema.BuiltinOptions, table)),
            BuiltinOptions=self._table(table, **operator.options),
        )

    def _signature(self, source: int, output: int) -> int:
        b = self._builder
        ends = [
            self._table("TensorMap", Name=b.CreateString(name), TensorIndex=index)
            for name, index in (("input", source), ("output", output))
        ]
        return self._table(
            "SignatureDef",
            Inputs=self._offsets(ends[:1]),
            Outputs=self._offsets(ends[1:]),
            SignatureKey=b.CreateString(_SIGNATURE),
        )

    def _data(self, payload: bytes) -> int:
        self._builder.Prep(_DATA_ALIGNMENT, len(payload))
        return int(self._builder.CreateByteVector(payload))

    def _table(self, table: str, **fields: int) -> int:
        getattr(self.schema, f"{table}Start")(self._builder)
        for name, value in fields.items():
            getattr(self.schema, f"{table}Add{name}")(self._builder, value)
        return int(getattr(self.schema, f"{table}End")(self._builder))

    def _offsets(self, items: list[int]) -> int:
        self._builder.StartVector(4, len(items), 4)
        for item in reversed(items):
            self._builder.PrependUOffsetTRelative(item)
        return int(self._builder.EndVector())

    def _integers(self, values: Sequence[int]) -> int:
        return int(self._builder.CreateNumpyVector(np.array(values, np.int32)))
