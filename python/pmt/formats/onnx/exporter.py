"""Writes a graph as an ONNX model of quantize and dequantize nodes (QDQ), int8 throughout.

Every op stands between DequantizeLinear and QuantizeLinear nodes, from which an engine makes its
integer operator. Tensors are NCHW, weights have a scale for each output channel.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt._util.extras import import_extra
from pmt.formats.layers import bounded_bias
from pmt.formats.notes import worth_noting
from pmt.net.graph import Graph, Op, Tensor, check_graph
from pmt.net.ops import CLAMPING_KINDS
from pmt.net.pixels import input_formula

_OPSET = 17
_IR_VERSION = 8


def onnx_model(graph: Graph, *, unsigned: bool = False) -> bytes:
    """Return a graph as a serialized model.

    Its ends are ``input`` and ``output``, (N, channels, height, width) with N free, of int8, or of
    uint8 where ``unsigned``: the int8 value + 128, which engines often like better. The description
    says how pixels become the input.
    """
    check_graph(graph)
    return _Writer(graph, unsigned).write()


class _Writer:
    def __init__(self, graph: Graph, unsigned: bool) -> None:
        self.onnx = import_extra("onnx", "writing .onnx needs the package onnx", "onnx")
        self.graph = graph
        self.type: Any = np.uint8 if unsigned else np.int8
        self.offset = 128 if unsigned else 0
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def write(self) -> bytes:
        helper = self.onnx.helper
        first = self.graph.input
        shift = f", + {self.offset} as uint8" if self.offset else ""
        for index in range(len(self.graph.tensors)):
            self._quantization(index)
        self._node("DequantizeLinear", ["input", *self._names(first)], f"x{first}")
        for op in self.graph.ops:
            self._op(op)
        model = helper.make_model(
            helper.make_graph(
                self.nodes,
                "pmt",
                [self._value(first)],
                [self._value(self.graph.output)],
                self.constants,
            ),
            opset_imports=[helper.make_opsetid("", _OPSET)],
            ir_version=_IR_VERSION,
            producer_name="pmt",
            producer_version=_core.__version__,
            doc_string=f"input {input_formula(self.graph)}{shift}",
        )
        note = {
            "input_mean": self.graph.input_mean,
            "input_std": self.graph.input_std,
            "metadata": worth_noting(self.graph.metadata),
        }
        helper.set_model_props(model, {"pmt": json.dumps(note)})
        serialized: bytes = model.SerializeToString()
        return serialized

    def _quantized(self, index: int) -> str:
        """Return the name of a tensor's int8 values."""
        if index == self.graph.input:
            return "input"
        return "output" if index == self.graph.output else f"q{index}"

    def _op(self, op: Op) -> None:
        sources = [f"x{index}" for index in op.inputs]
        result = f"r{op.output}"
        if op.weights is not None:
            self._convolution(op, sources[0], result)
        elif op.kind == "add":
            self._node("Add", sources, result)
        elif op.kind == "concatenation":
            self._node("Concat", sources, result, axis=1)
        elif op.kind == "mean":
            self._node("GlobalAveragePool", sources, result)
        elif op.kind in ("average_pool", "max_pool"):
            name = {"average_pool": "AveragePool", "max_pool": "MaxPool"}[op.kind]
            self._node(name, sources, result, **_window(op))
        elif op.kind == "pad":
            top, left, bottom, right = op.padding
            pads = np.array([0, 0, top, left, 0, 0, bottom, right], np.int64)
            self._node("Pad", [*sources, self._constant(f"{result}_pads", pads)], result)
        else:
            self._reshape(op, sources[0], result)
        self._quantize(op, self._clamped(op, result))

    def _convolution(self, op: Op, source: str, result: str) -> None:
        assert op.weights is not None
        assert op.weight_scales is not None
        tensor = self.graph.tensors[op.inputs[0]]
        kernel = op.kernel if op.kind != "fully_connected" else (tensor.height, tensor.width)
        weights = _oihw(op, tensor)
        scales = op.weight_scales.astype(np.float32)
        w = self._dequantized(f"{op.name}/weights", weights, scales)
        bias_scales = np.float32(tensor.scale) * scales
        b = self._dequantized(f"{op.name}/bias", bounded_bias(op, tensor), bias_scales)
        groups = tensor.channels if op.kind == "depthwise_conv2d" else 1
        window = _window(op) | {"kernel_shape": list(kernel)}
        self._node("Conv", [source, w, b], result, group=groups, **window)

    def _reshape(self, op: Op, source: str, result: str) -> None:
        """Reshape as NHWC does; the values' order differs where a side is longer than 1."""
        out = self.graph.tensors[op.output]
        self._node("Transpose", [source], f"{result}_nhwc", perm=[0, 2, 3, 1])
        shape = np.array([0, out.height, out.width, out.channels], np.int64)
        reshaped = f"{result}_reshaped"
        self._node("Reshape", [f"{result}_nhwc", self._constant(f"{result}_to", shape)], reshaped)
        self._node("Transpose", [reshaped], result, perm=[0, 3, 1, 2])

    def _clamped(self, op: Op, name: str) -> str:
        """Clip where the clamp is tighter than the type: QuantizeLinear does the rest."""
        low, high = op.clamp
        if (low <= -128 and high >= 127) or op.kind not in CLAMPING_KINDS:
            return name
        out = self.graph.tensors[op.output]
        bounds = [
            self._constant(f"{name}_{end}", np.float32(out.scale * (bound - out.zero_point)))
            for end, bound in (("low", low), ("high", high))
        ]
        self._node("Clip", [name, *bounds], f"{name}_clipped")
        return f"{name}_clipped"

    def _quantize(self, op: Op, name: str) -> None:
        index = op.output
        quantized = self._quantized(index)
        self._node("QuantizeLinear", [name, *self._names(index)], quantized)
        if any(index in reader.inputs for reader in self.graph.ops):
            self._node("DequantizeLinear", [quantized, *self._names(index)], f"x{index}")

    def _dequantized(
        self, name: str, values: npt.NDArray[Any], scales: npt.NDArray[np.float32]
    ) -> str:
        zeros = np.zeros(len(scales), values.dtype)
        inputs = [
            self._constant(f"{name}_{part}", value)
            for part, value in (("q", values), ("scale", scales), ("zero", zeros))
        ]
        self._node("DequantizeLinear", inputs, name, axis=0)
        return name

    def _quantization(self, index: int) -> None:
        tensor = self.graph.tensors[index]
        self._constant(f"s{index}", np.float32(tensor.scale))
        self._constant(f"z{index}", self.type(tensor.zero_point + self.offset))

    def _names(self, index: int) -> list[str]:
        return [f"s{index}", f"z{index}"]

    def _constant(self, name: str, value: npt.ArrayLike) -> str:
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def _node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> None:
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [output], **attributes))

    def _value(self, index: int) -> Any:
        tensor = self.graph.tensors[index]
        shape: list[str | int | None] = ["N", tensor.channels, tensor.height, tensor.width]
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(self.type))
        return self.onnx.helper.make_tensor_value_info(self._quantized(index), kind, shape)


def _window(op: Op) -> dict[str, list[int]]:
    return {"kernel_shape": list(op.kernel), "strides": list(op.stride), "pads": list(op.padding)}


def _oihw(op: Op, source: Tensor) -> npt.NDArray[np.int8]:
    """Return a layer's weights as (out, in, height, width) of a convolution."""
    assert op.weights is not None
    if op.kind == "depthwise_conv2d":
        return np.ascontiguousarray(op.weights.transpose(2, 0, 1)[:, None])
    ohwi = op.weights.reshape(-1, *op.kernel, source.channels)
    if op.kind == "fully_connected":
        ohwi = op.weights.reshape(-1, source.height, source.width, source.channels)
    return np.ascontiguousarray(ohwi.transpose(0, 3, 1, 2))
