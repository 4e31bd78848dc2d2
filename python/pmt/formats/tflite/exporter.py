"""Writes a graph as a full-integer .tflite file of standard operators.

What no operator says in one step takes several: padding that is neither VALID nor SAME is a PAD
before the layer, a clamp that no fused activation makes is a MINIMUM or MAXIMUM after it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt._util.arrays import Array, FloatArray, Int8Array
from pmt._util.extras import import_extra
from pmt.formats.layers import bounded_bias, same_sides
from pmt.net.graph import Graph, Op, Tensor, check_graph
from pmt.net.ops import padded_size
from pmt.net.pixels import input_formula

# Each operator's first version that takes int8, and the table of its options.
_OPERATORS = {
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
    "CONCATENATION": (2, "ConcatenationOptions"),
    "QUANTIZE": (1, "QuantizeOptions"),
}
_SCHEMA_VERSION = 3
_IDENTIFIER = b"TFL3"
_DATA_ALIGNMENT = 16  # of constants, as the schema asks
_SIGNATURE = "serving_default"  # the key that converters give
_SAME, _VALID = 0, 1
_NONE, _RELU, _RELU_N1_TO_1, _RELU6 = 0, 1, 2, 3
_ALL = (-128, 127)
_FLAT_READERS = ("fully_connected", "reshape")


def tflite_model(graph: Graph) -> bytes:
    """Return a graph as a .tflite file for one image; an interpreter can resize it to more.

    It is int8 in and out, with the graph's quantization. Tensors of the file stand in the order of
    the graph's and keep their names; further ones follow. Weights are named ``LAYER/weights``,
    biases ``LAYER/bias``. The signature is ``serving_default``, its ends ``input`` and ``output``.
    The description says how pixels become the input; the metadata entry ``pmt`` is JSON:
    ``input_mean``, ``input_std``, ``blocks`` (names of layers) and ``metadata``.

    A ValueError tells of a graph that contradicts itself, or of an average pool whose padding is
    neither VALID nor SAME.
    """
    check_graph(graph)
    return _Lowering(graph).file()


class _Lowering:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.tflite = TfliteFile()

    def file(self) -> bytes:
        for index, tensor in enumerate(self.graph.tensors):
            self._activation(tensor.name, tensor, flat=self._is_flat(index))
        for op in self.graph.ops:
            self._op(op)
        graph = self.graph
        title = graph.metadata.get("name") or graph.metadata.get("source") or "int8 network"
        description = f"pmt {_core.__version__}: {title}; input {input_formula(graph)}"
        return self.tflite.finish(graph.input, graph.output, description, _metadata(graph))

    def _op(self, op: Op) -> None:
        if op.kind in ("conv2d", "depthwise_conv2d"):
            self._convolution(op)
        elif op.kind == "fully_connected":
            self._fully_connected(op)
        elif op.kind == "add":
            self._clamped("ADD", op.inputs, op)
        elif op.kind == "concatenation":
            unclamped = self._unclamped(op)
            self.tflite.operator("CONCATENATION", self._alike(op), unclamped, Axis=3)
            self._clamp(op, unclamped, op.output)
        elif op.kind == "mean":
            axes = self._integers(f"{op.name}/axes", [1, 2])
            unclamped = self._unclamped(op)
            self.tflite.operator("MEAN", [op.inputs[0], axes], unclamped, KeepDims=1)
            self._clamp(op, unclamped, op.output)
        elif op.kind in ("average_pool", "max_pool"):
            self._pool(op)
        elif op.kind == "pad":
            paddings = self._paddings(op)
            self.tflite.operator("PAD", [op.inputs[0], paddings], op.output)
        else:
            self._reshape(op.name, op.inputs[0], op.output)

    def _convolution(self, op: Op) -> None:
        assert op.weights is not None
        source, padding = self._padded(op, "PAD")
        options = {"Padding": padding, "StrideH": op.stride[0], "StrideW": op.stride[1]}
        if op.kind == "conv2d":
            parameters = self._parameters(op, op.weights, 0)
            self._clamped("CONV_2D", [source, *parameters], op, **options)
            return
        multiplier = op.weights.shape[2] // self.graph.tensors[op.inputs[0]].channels
        parameters = self._parameters(op, op.weights[None], 3)
        inputs = [source, *parameters]
        self._clamped("DEPTHWISE_CONV_2D", inputs, op, DepthMultiplier=multiplier, **options)

    def _fully_connected(self, op: Op) -> None:
        """Write (1, out), the operator's own shape, and a reshape that other readers need."""
        assert op.weights is not None
        inputs = [op.inputs[0], *self._parameters(op, op.weights, 0)]
        if self._is_flat(op.output):
            self._clamped("FULLY_CONNECTED", inputs, op)
            return
        tensor = self.graph.tensors[op.output]
        flat = self._activation(f"{op.name}/flat", tensor, flat=True)
        self._clamped("FULLY_CONNECTED", inputs, op, output=flat)
        self._reshape(op.name, flat, op.output)

    def _is_flat(self, index: int) -> bool:
        """Whether a tensor is written as (1, channels): from a fully connected layer, to such."""
        made = any(op.output == index and op.kind == "fully_connected" for op in self.graph.ops)
        readers = [op.kind for op in self.graph.ops if index in op.inputs]
        return made and all(kind in _FLAT_READERS for kind in readers)

    def _reshape(self, name: str, source: int, output: int) -> None:
        to = self.graph.tensors[output]
        shape = self._integers(f"{name}/shape", [-1, to.height, to.width, to.channels])
        self.tflite.operator("RESHAPE", [source, shape], output)

    def _pool(self, op: Op) -> None:
        kind = {"average_pool": "AVERAGE_POOL_2D", "max_pool": "MAX_POOL_2D"}[op.kind]
        if self._padding(op) is None and op.kind == "average_pool":
            raise ValueError(
                f"op {op.name!r}: a .tflite file holds no average pool with the padding "
                f"{op.padding}, which is neither VALID nor SAME; write an .onnx file"
            )
        source, padding = self._padded(op, "PADV2")
        window = {"StrideH": op.stride[0], "StrideW": op.stride[1]}
        window |= {"FilterHeight": op.kernel[0], "FilterWidth": op.kernel[1]}
        self._clamped(kind, [source], op, Padding=padding, **window)

    def _alike(self, op: Op) -> list[int]:
        """Return an op's inputs in its output's quantization, which the operator asks for."""
        target, inputs = self.graph.tensors[op.output], []
        for place, index in enumerate(op.inputs):
            source = self.graph.tensors[index]
            if not source.is_quantized_as(target.scale, target.zero_point):
                like = replace(target, channels=source.channels)
                requantized = self._activation(f"{op.name}/input{place}", like)
                self.tflite.operator("QUANTIZE", [index], requantized)
                index = requantized
            inputs.append(index)
        return inputs

    def _padding(self, op: Op) -> int | None:
        """Return VALID or SAME, None where the op's padding is neither."""
        if not any(op.padding):
            return _VALID
        source = self.graph.tensors[op.inputs[0]]
        top, left, bottom, right = op.padding
        same = [*map(same_sides, source.shape, op.kernel, op.stride)]
        return _SAME if same == [(top, bottom), (left, right)] else None

    def _padded(self, op: Op, kind: str) -> tuple[int, int]:
        """Return the tensor to read and its padding, after a PAD where the op needs one."""
        padding = self._padding(op)
        if padding is not None:
            return op.inputs[0], padding
        source = self.graph.tensors[op.inputs[0]]
        padded = self._activation(
            f"{op.name}/padded", source, *padded_size(source.shape, op.padding)
        )
        inputs = [op.inputs[0], self._paddings(op)]
        # PAD pads with the zero point; a maximum must not see more than the lowest value.
        if kind == "PADV2" and source.zero_point > -128:
            inputs.append(self._value(f"{op.name}/lowest", -128, source))
        else:
            kind = "PAD"
        self.tflite.operator(kind, inputs, padded)
        return padded, _VALID

    def _clamped(
        self, kind: str, inputs: Sequence[int], op: Op, *, output: int | None = None, **options: int
    ) -> None:
        """Write an operator that makes the op's clamp by its activation, or is followed by it."""
        output = op.output if output is None else output
        activation = _activation_function(op.clamp, self.graph.tensors[op.output])
        if activation is not None:
            self.tflite.operator(
                kind, inputs, output, FusedActivationFunction=activation, **options
            )
            return
        unclamped = self._unclamped(op)
        self.tflite.operator(kind, inputs, unclamped, **options)
        self._clamp(op, unclamped, output)

    def _unclamped(self, op: Op) -> int:
        if op.clamp == _ALL:
            return op.output
        tensor = self.graph.tensors[op.output]
        flat = op.kind == "fully_connected"
        return self._activation(f"{op.name}/unclamped", tensor, flat=flat)

    def _clamp(self, op: Op, source: int, output: int) -> None:
        tensor = self.graph.tensors[op.output]
        low, high = op.clamp
        bounds = [("MAXIMUM", "low", low)] if low > -128 else []
        bounds += [("MINIMUM", "high", high)] if high < 127 else []
        for kind, name, bound in bounds:
            last = (kind, name, bound) == bounds[-1]
            flat = op.kind == "fully_connected"
            to = output if last else self._activation(f"{op.name}/raised", tensor, flat=flat)
            value = self._value(f"{op.name}/{name}", bound, tensor)
            self.tflite.operator(kind, [source, value], to)
            source = to

    def _activation(self, name: str, like: Tensor, *size: int, flat: bool = False) -> int:
        """Add an activation of another's quantization and channels, of its size unless given."""
        shape = (1, like.channels) if flat else (1, *(size or like.shape[:2]), like.channels)
        return self.tflite.activation(name, shape, like.scale, like.zero_point)

    def _value(self, name: str, value: int, like: Tensor) -> int:
        values = np.array([value], np.int8)
        return self.tflite.constant(name, values, [like.scale], zero_point=like.zero_point)

    def _paddings(self, op: Op) -> int:
        top, left, bottom, right = op.padding
        amounts = np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32)
        return self.tflite.constant(f"{op.name}/paddings", amounts)

    def _integers(self, name: str, values: list[int]) -> int:
        return self.tflite.constant(name, np.array(values, np.int32))

    def _parameters(self, op: Op, weights: Int8Array, axis: int) -> list[int]:
        assert op.weight_scales is not None
        source = self.graph.tensors[op.inputs[0]]
        scales = op.weight_scales.astype(np.float32)
        # Older runtimes have fully connected layers of one scale only.
        if op.kind == "fully_connected" and bool((scales == scales[0]).all()):
            scales = scales[:1]
        bias = bounded_bias(op, source)
        return [
            self.tflite.constant(f"{op.name}/weights", weights, scales, axis=axis),
            self.tflite.constant(f"{op.name}/bias", bias, np.float32(source.scale) * scales),
        ]


def _activation_function(clamp: tuple[int, int], out: Tensor) -> int | None:
    """Return the fused activation that clamps so, None where there is none."""
    if clamp == _ALL:
        return _NONE
    for function, low, high in ((_RELU, 0, None), (_RELU6, 0, 6), (_RELU_N1_TO_1, -1, 1)):
        if clamp == (_bound(low, out), 127 if high is None else _bound(high, out)):
            return function
    return None


def _bound(real: int, out: Tensor) -> int | None:
    """Return a bound as engines quantize it; None at a tie, which they round differently."""
    steps = np.float32(real) / np.float32(out.scale)
    if steps - np.floor(steps) == 0.5:
        return None
    return min(127, max(-128, int(np.rint(steps)) + out.zero_point))


def _metadata(graph: Graph) -> bytes:
    names = {name: [graph.ops[i].name for i in layers] for name, layers in graph.blocks.items()}
    content = {
        "input_mean": list(graph.input_mean),
        "input_std": list(graph.input_std),
        "blocks": names,
        "metadata": graph.metadata,
    }
    return json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False).encode()


@dataclass(frozen=True)
class _Tensor:
    name: str
    shape: tuple[int, ...]
    dtype: str
    scales: FloatArray
    zero_point: int
    axis: int
    data: bytes | None


_Operator = tuple[str, Sequence[int], int, dict[str, int]]  # kind, inputs, output, options


class Flatbuffer:
    """A .tflite file as tables, vectors and offsets; every method returns a place in it."""

    def __init__(self) -> None:
        need = "writing .tflite needs the package tflite"
        self.schema: Any = import_extra("tflite", need, "tflite")
        self.builder: Any = import_extra("flatbuffers", need, "tflite").Builder(1 << 16)

    def table(self, table: str, **fields: int) -> int:
        """Write a table; numbers in ``fields`` are values or places, as the schema has them."""
        getattr(self.schema, f"{table}Start")(self.builder)
        for name, value in fields.items():
            getattr(self.schema, f"{table}Add{name}")(self.builder, value)
        return int(getattr(self.schema, f"{table}End")(self.builder))

    def offsets(self, items: list[int]) -> int:
        """Write a vector of tables."""
        self.builder.StartVector(4, len(items), 4)
        for item in reversed(items):
            self.builder.PrependUOffsetTRelative(item)
        return int(self.builder.EndVector())

    def integers(self, values: Sequence[int]) -> int:
        """Write a vector of int32."""
        return int(self.builder.CreateNumpyVector(np.array(values, np.int32)))

    def finished(self, model: int) -> bytes:
        """Return the file, whose root is at ``model``."""
        self.builder.Finish(model, _IDENTIFIER)
        return bytes(self.builder.Output())


class TfliteFile(Flatbuffer):
    """A .tflite file in the making; every method that adds a tensor returns its index."""

    def __init__(self) -> None:
        super().__init__()
        self._tensors: list[_Tensor] = []
        self._operators: list[_Operator] = []

    def activation(self, name: str, shape: tuple[int, ...], scale: float, zero_point: int) -> int:
        """Add an int8 activation; ``shape`` has the batch."""
        scales = np.array([scale], np.float32)
        return self._add(_Tensor(name, shape, "INT8", scales, zero_point, 0, None))

    def constant(
        self,
        name: str,
        values: Array,
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
        self._operators.append((kind, inputs, output, options))

    def finish(self, source: int, output: int, description: str, metadata: bytes) -> bytes:
        """Lay everything out; equal parts give equal bytes.

        ``source`` and ``output`` are the tensors that the file takes and gives, ``description`` is
        for people, ``metadata`` is kept as the metadata entry ``pmt``.
        """
        b = self.builder
        kinds = sorted({kind for kind, *_ in self._operators})
        payloads = [t.data for t in self._tensors if t.data is not None] + [metadata]
        buffers = [self.table("Buffer")]
        for payload in payloads:
            b.Prep(_DATA_ALIGNMENT, len(payload))
            buffers.append(self.table("Buffer", Data=b.CreateByteVector(payload)))
        codes = [self._operator_code(kind) for kind in kinds]
        graph = self._subgraph(kinds, source, output)
        entry = self.table("Metadata", Name=b.CreateString("pmt"), Buffer=len(payloads))
        signature = self._signature(source, output)
        model = self.table(
            "Model",
            Version=_SCHEMA_VERSION,
            OperatorCodes=self.offsets(codes),
            Subgraphs=self.offsets([graph]),
            Description=b.CreateString(description),
            Buffers=self.offsets(buffers),
            Metadata=self.offsets([entry]),
            SignatureDefs=self.offsets([signature]),
        )
        return self.finished(model)

    def _add(self, tensor: _Tensor) -> int:
        self._tensors.append(tensor)
        return len(self._tensors) - 1

    def _operator_code(self, kind: str) -> int:
        number = int(getattr(self.schema.BuiltinOperator, kind))
        version = _OPERATORS[kind][0]
        # Readers of schemas before 3a look only at the deprecated field.
        return self.table(
            "OperatorCode", DeprecatedBuiltinCode=number, BuiltinCode=number, Version=version
        )

    def _subgraph(self, kinds: list[str], source: int, output: int) -> int:
        buffer = 0
        tensors = []
        for tensor in self._tensors:
            buffer += tensor.data is not None
            tensors.append(self._write_tensor(tensor, buffer if tensor.data is not None else 0))
        operators = [self._write_operator(operator, kinds) for operator in self._operators]
        return self.table(
            "SubGraph",
            Tensors=self.offsets(tensors),
            Inputs=self.integers([source]),
            Outputs=self.integers([output]),
            Operators=self.offsets(operators),
            Name=self.builder.CreateString("main"),
        )

    def _write_tensor(self, tensor: _Tensor, buffer: int) -> int:
        fields = {
            "Shape": self.integers(tensor.shape),
            "Type": int(getattr(self.schema.TensorType, tensor.dtype)),
            "Buffer": buffer,
            "Name": self.builder.CreateString(tensor.name),
        }
        if len(tensor.scales):
            zeros = np.full(len(tensor.scales), tensor.zero_point, np.int64)
            fields["Quantization"] = self.table(
                "QuantizationParameters",
                Scale=self.builder.CreateNumpyVector(tensor.scales),
                ZeroPoint=self.builder.CreateNumpyVector(zeros),
                QuantizedDimension=tensor.axis,
            )
        return self.table("Tensor", **fields)

    def _write_operator(self, operator: _Operator, kinds: list[str]) -> int:
        kind, inputs, output, options = operator
        table = _OPERATORS[kind][1]
        return self.table(
            "Operator",
            OpcodeIndex=kinds.index(kind),
            Inputs=self.integers(inputs),
            Outputs=self.integers([output]),
            BuiltinOptionsType=int(getattr(self.schema.BuiltinOptions, table)),
            BuiltinOptions=self.table(table, **options),
        )

    def _signature(self, source: int, output: int) -> int:
        b = self.builder
        ends = [
            self.table("TensorMap", Name=b.CreateString(name), TensorIndex=index)
            for name, index in (("input", source), ("output", output))
        ]
        return self.table(
            "SignatureDef",
            Inputs=self.offsets(ends[:1]),
            Outputs=self.offsets(ends[1:]),
            SignatureKey=b.CreateString(_SIGNATURE),
        )
