"""QuantizeLinear and DequantizeLinear: the scale of an activation, or int8 weights.

uint8 with zero point z is int8 with zero point z - 128: the same numbers, 128 lower.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.formats.onnx.call import Call, QuantizedConstant
from pmt.formats.onnx.draft import Quantization
from pmt.formats.onnx.file import Unsupported
from pmt.formats.onnx.view import View

Array = npt.NDArray[Any]
_TYPES = {2: "uint8", 3: "int8", 6: "int32"}
_STATIC_INT8 = "quantize with onnxruntime.quantization.quantize_static, int8 or uint8"


def quantize(call: Call) -> View | Array:
    """Convert QuantizeLinear, of an activation or of float weights."""
    _require_quantized(call)
    scales, zeros, dtype = _parameters(call, _declared_type(call))
    value = call.values[0]
    if isinstance(value, View):
        return _quantized_view(call, value, _one(scales, zeros, dtype))
    if isinstance(value, QuantizedConstant):
        value = value.real()
    assert value is not None
    shape = [-1 if i == _axis(call, value) else 1 for i in range(value.ndim)]
    scale, zero = (part.reshape(shape) if part.size > 1 else part for part in (scales, zeros))
    limits = np.iinfo(dtype)
    steps = np.rint(value.astype(np.float32) / scale.astype(np.float32)) + zero
    return np.clip(steps, limits.min, limits.max).astype(dtype)


def dequantize(call: Call) -> View | QuantizedConstant:
    """Convert DequantizeLinear, of an activation or of integer weights or biases."""
    _require_quantized(call)
    value = call.values[0]
    if isinstance(value, View):
        scales, zeros, dtype = _parameters(call, _declared_type(call))
        return _dequantized_view(call, value, _one(scales, zeros, dtype))
    if not isinstance(value, np.ndarray) or str(value.dtype) not in _TYPES.values():
        found = value.dtype if isinstance(value, np.ndarray) else "float"
        raise Unsupported(f"it dequantizes {found} constants", _STATIC_INT8)
    scales, zeros, dtype = _parameters(call, str(value.dtype))
    if dtype == "uint8":
        value, zeros = (value.astype(np.int16) - 128).astype(np.int8), zeros - 128
    axis = _axis(call, value) if scales.size > 1 else None
    if axis is not None and (axis >= value.ndim or value.shape[axis] != scales.size):
        raise Unsupported(
            f"its {scales.size} scales do not fit axis {axis} of shape {value.shape}",
            "the file contradicts itself, export again",
        )
    return QuantizedConstant(value, scales, zeros, axis)


def moved(call: Call, constant: QuantizedConstant) -> QuantizedConstant:
    """Transpose or copy quantized weights."""
    if call.node.kind == "Transpose":
        rank = constant.values.ndim
        order = call.attribute("perm", list(range(rank))[::-1])
        if sorted(order) != list(range(rank)):
            raise Unsupported(f"perm {order} does not order {rank} axes", "export again")
        axis = None if constant.axis is None else order.index(constant.axis)
        return replace(constant, values=constant.values.transpose(order), axis=axis)
    if call.node.kind in ("Identity", "Dropout", "Cast"):
        return constant
    raise Unsupported("it changes quantized weights", "change the weights before quantization")


def _require_quantized(call: Call) -> None:
    if not call.draft.quantized:
        raise Unsupported(
            "the network is quantized already",
            "load it as it is: pmt.load(path), or `pmt info model.onnx`",
        )


def _axis(call: Call, value: Array) -> int:
    return int(call.attribute("axis", 1)) % max(1, value.ndim)


def _declared_type(call: Call) -> str:
    """Return the integer type, which the zero point or an attribute says."""
    if call.has(2) and isinstance(call.values[2], np.ndarray):
        return str(call.values[2].dtype)
    declared = call.attribute("output_dtype", 0)
    return _TYPES.get(declared, f"data type {declared}") if declared else "uint8"


def _parameters(
    call: Call, dtype: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], str]:
    if dtype not in _TYPES.values():
        raise Unsupported(f"it quantizes to {dtype}", _STATIC_INT8)
    if call.attribute("block_size", 0):
        raise Unsupported("it has scales for blocks of weights", _STATIC_INT8)
    scales = call.constant(1, "scale").astype(np.float64).ravel()
    zeros = np.zeros(scales.size, np.int64)
    if call.has(2):
        zeros = call.constant(2, "zero point").astype(np.int64).ravel()
    if not scales.size or zeros.size != scales.size:
        raise Unsupported(
            f"it has {scales.size} scales and {zeros.size} zero points", "quantize again"
        )
    if not np.all(np.isfinite(scales) & (scales > 0)):
        raise Unsupported(
            f"its scales must be positive and finite, the least is {scales.min()}", "quantize again"
        )
    return scales, zeros, dtype


def _one(scales: npt.NDArray[np.float64], zeros: npt.NDArray[np.int64], dtype: str) -> Quantization:
    if scales.size != 1 or dtype == "int32":
        raise Unsupported(
            f"it has {scales.size} scales of {dtype} for an activation",
            "quantize activations to 8 bits with one scale each",
        )
    zero = int(zeros[0]) - (128 if dtype == "uint8" else 0)
    if not -128 <= zero <= 127:
        raise Unsupported(f"its zero point {int(zeros[0])} is outside of {dtype}", "quantize again")
    return float(scales[0]), zero


def _quantized_view(call: Call, view: View, wanted: Quantization) -> View:
    tensor = call.draft.tensors[view.tensor]
    if tensor.quantization is None:
        tensor.quantization = wanted
    elif tensor.quantization != wanted and not view.dropped:
        ones = np.ones(view.size[2])
        view = call.draft.channelwise(view, call.name("requantize"), ones, np.zeros_like(ones))
        call.draft.tensors[view.tensor].quantization = wanted
    return replace(view, raw=False)


def _dequantized_view(call: Call, view: View, given: Quantization) -> View:
    tensor = call.draft.tensors[view.tensor]
    if view.tensor == 0 and tensor.quantization is None:
        tensor.quantization = given
    elif tensor.quantization != given and not view.dropped:
        raise Unsupported(
            f"it reads scale and zero point {given}, but {tensor.name!r} was written with "
            f"{tensor.quantization}",
            "the file contradicts itself, quantize again",
        )
    return replace(view, raw=False)
