"""Writes a graph as a full-integer .tflite model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.benchmark.rivals.rival import missing, safe_bias
from pmt.graph import Graph, Op, Tensor

__all__ = ["tflite_model"]

_VERSION = 3
_IDENTIFIER = b"TFL3"
# Of the first version of each operator that takes int8.
_OPERATOR_VERSIONS = {
    "CONV_2D": 3,
    "DEPTHWISE_CONV_2D": 3,
    "FULLY_CONNECTED": 4,
    "ADD": 2,
    "MEAN": 2,
    "PAD": 2,
    "AVERAGE_POOL_2D": 2,
    "MAX_POOL_2D": 2,
    "RESHAPE": 1,
}


def tflite_model(graph: Graph) -> bytes:
    """Return the file's bytes, for one image; an interpreter can resize it to more.

    Raises
    ------
    ImportError
        If the package ai-edge-litert is missing.
    ValueError
        If the format cannot say what an op does.
    """
    return _Writer(graph).write()


class _Writer:
    def __init__(self, graph: Graph) -> None:
        try:
            import ai_edge_litert.schema_py_generated as schema
            import flatbuffers
        except ImportError:
            raise missing("ai-edge-litert") from None
        self.schema = schema
        self.flatbuffers = flatbuffers
        self.graph = graph
        self.buffers: list[Any] = [schema.BufferT()]
        self.tensors: list[Any] = []
        self.operators: list[Any] = []
        self.names: list[str] = []

    def write(self) -> bytes:
        schema = self.schema
        for tensor in self.graph.tensors:
            self._activation(tensor.name, (tensor.height, tensor.width, tensor.channels), tensor)
        for op in self.graph.ops:
            self._op(op)
        subgraph = schema.SubGraphT(
            tensors=self.tensors,
            inputs=[self.graph.input],
            outputs=[self.graph.output],
            operators=self.operators,
            name="pmt",
        )
        codes = [
            schema.OperatorCodeT(
                deprecatedBuiltinCode=int(getattr(schema.BuiltinOperator, name)),
                builtinCode=int(getattr(schema.BuiltinOperator, name)),
                version=_OPERATOR_VERSIONS[name],
            )
            for name in self.names
        ]
        model = schema.ModelT(
            version=_VERSION,
            operatorCodes=codes,
            subgraphs=[subgraph],
            description="written by pmt bench",
            buffers=self.buffers,
        )
        builder = self.flatbuffers.Builder(1 << 20)
        builder.Finish(model.Pack(builder), file_identifier=_IDENTIFIER)
        return bytes(builder.Output())

    def _op(self, op: Op) -> None:
        if op.kind in ("conv2d", "depthwise_conv2d"):
            self._convolution(op)
        elif op.kind == "fully_connected":
            options = self.schema.FullyConnectedOptionsT(
                fusedActivationFunction=self._activation_function(op)
            )
            assert op.weights is not None
            self._operator(
                "FULLY_CONNECTED", [op.inputs[0], *self._parameters(op, op.weights, 0)], op, options
            )
        elif op.kind == "add":
            options = self.schema.AddOptionsT(fusedActivationFunction=self._activation_function(op))
            self._operator("ADD", list(op.inputs), op, options)
        elif op.kind == "mean":
            axes = self._constant("axes", np.array([1, 2], np.int32))
            options = self.schema.ReducerOptionsT(keepDims=True)
            self._operator("MEAN", [op.inputs[0], axes], op, options)
        elif op.kind in ("average_pool", "max_pool"):
            self._pool(op)
        elif op.kind == "pad":
            self._operator("PAD", [op.inputs[0], self._paddings(op)], op, self.schema.PadOptionsT())
        else:
            out = self.graph.tensors[op.output]
            shape = [-1, out.height, out.width, out.channels]
            to = self._constant("shape", np.array(shape, np.int32))
            self._operator("RESHAPE", [op.inputs[0], to], op, self.schema.ReshapeOptionsT())

    def _convolution(self, op: Op) -> None:
        assert op.weights is not None
        source, padding = self._padded(op)
        window: dict[str, int] = {
            "padding": padding,
            "strideH": op.stride[0],
            "strideW": op.stride[1],
            "fusedActivationFunction": self._activation_function(op),
        }
        if op.kind == "conv2d":
            parameters = self._parameters(op, op.weights, 0)
            options = self.schema.Conv2DOptionsT(**window)
            self._operator("CONV_2D", [source, *parameters], op, options)
        else:
            parameters = self._parameters(op, op.weights[None], 3)
            options = self.schema.DepthwiseConv2DOptionsT(depthMultiplier=1, **window)
            self._operator("DEPTHWISE_CONV_2D", [source, *parameters], op, options)

    def _pool(self, op: Op) -> None:
        padding = self._padding(op)
        if padding is None:
            raise ValueError(f"{op.name}: .tflite has no {op.kind} with padding {op.padding}")
        options = self.schema.Pool2DOptionsT(
            padding=padding,
            strideH=op.stride[0],
            strideW=op.stride[1],
            filterHeight=op.kernel[0],
            filterWidth=op.kernel[1],
            fusedActivationFunction=self._activation_function(op),
        )
        name = {"average_pool": "AVERAGE_POOL_2D", "max_pool": "MAX_POOL_2D"}[op.kind]
        self._operator(name, [op.inputs[0]], op, options)

    def _padding(self, op: Op) -> int | None:
        """Return VALID or SAME, None where the op's padding is neither."""
        source = self.graph.tensors[op.inputs[0]]
        top, left, bottom, right = op.padding
        if not any(op.padding):
            return int(self.schema.Padding.VALID)
        sides = zip((source.height, source.width), op.kernel, op.stride, strict=True)
        totals = [max((-(-size // s) - 1) * s + k - size, 0) for size, k, s in sides]
        same = [(total // 2, total - total // 2) for total in totals]
        return int(self.schema.Padding.SAME) if same == [(top, bottom), (left, right)] else None

    def _padded(self, op: Op) -> tuple[int, int]:
        """Return the tensor to read and its padding, behind a PAD where the op needs one."""
        padding = self._padding(op)
        if padding is not None:
            return op.inputs[0], padding
        source = self.graph.tensors[op.inputs[0]]
        top, left, bottom, right = op.padding
        shape = (source.height + top + bottom, source.width + left + right, source.channels)
        index = self._activation(f"{op.name}_padded", shape, source)
        self._node("PAD", [op.inputs[0], self._paddings(op)], index, self.schema.PadOptionsT())
        return index, int(self.schema.Padding.VALID)

    def _paddings(self, op: Op) -> int:
        top, left, bottom, right = op.padding
        return self._constant(
            "paddings", np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32)
        )

    def _parameters(self, op: Op, weights: npt.NDArray[np.int8], axis: int) -> list[int]:
        assert op.bias is not None
        assert op.weight_scales is not None
        source = self.graph.tensors[op.inputs[0]]
        scales = op.weight_scales.astype(np.float32)
        return [
            self._constant(f"{op.name}_weights", weights, scales, axis),
            self._constant(
                f"{op.name}_bias", safe_bias(op.bias), np.float32(source.scale) * scales, 0
            ),
        ]

    def _activation_function(self, op: Op) -> int:
        functions = self.schema.ActivationFunctionType
        out = self.graph.tensors[op.output]
        low, high = op.clamp
        six = min(127, int(np.rint(6 / out.scale)) + out.zero_point)
        if (low, high) == (-128, 127):
            return int(functions.NONE)
        if (low, high) == (out.zero_point, 127):
            return int(functions.RELU)
        if (low, high) == (out.zero_point, six):
            return int(functions.RELU6)
        raise ValueError(f"{op.name}: .tflite has no activation for the clamp {op.clamp}")

    def _activation(self, name: str, shape: tuple[int, int, int], like: Tensor) -> int:
        quantisation = self.schema.QuantizationParametersT(
            scale=[like.scale], zeroPoint=[like.zero_point]
        )
        return self._tensor(name, [1, *shape], self.schema.TensorType.INT8, 0, quantisation)

    def _constant(
        self,
        name: str,
        values: npt.NDArray[Any],
        scales: npt.NDArray[np.float32] | None = None,
        axis: int = 0,
    ) -> int:
        types = self.schema.TensorType
        kind = types.INT8 if values.dtype == np.int8 else types.INT32
        quantisation = None
        if scales is not None:
            quantisation = self.schema.QuantizationParametersT(
                scale=scales.tolist(), zeroPoint=[0] * len(scales), quantizedDimension=axis
            )
        data = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
        self.buffers.append(self.schema.BufferT(data=data))
        return self._tensor(name, list(values.shape), kind, len(self.buffers) - 1, quantisation)

    def _tensor(
        self, name: str, shape: list[int], kind: int, buffer: int, quantisation: Any
    ) -> int:
        self.tensors.append(
            self.schema.TensorT(
                shape=shape, type=kind, buffer=buffer, name=name, quantization=quantisation
            )
        )
        return len(self.tensors) - 1

    def _operator(self, name: str, inputs: list[int], op: Op, options: Any) -> None:
        self._node(name, inputs, op.output, options)

    def _node(self, name: str, inputs: list[int], output: int, options: Any) -> None:
        if name not in self.names:
            self.names.append(name)
        kind = type(options).__name__.removesuffix("T")
        self.operators.append(
            self.schema.OperatorT(
                opcodeIndex=self.names.index(name),
                inputs=inputs,
                outputs=[output],
                builtinOptionsType=int(getattr(self.schema.BuiltinOptions, kind)),
                builtinOptions=options,
            )
        )
