"""One node as a converter sees it, its inputs as activations or constants, quantized or not.

uint8 with zero point z is int8 with zero point z - 128: the same numbers, 128 lower.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._core import LARGEST_WEIGHT
from pmt._util.arrays import Array
from pmt.formats.layers import Unsupported, require_scales
from pmt.formats.onnx.draft import Draft, Quantization, View, image_view
from pmt.formats.onnx.file import Node
from pmt.net.ops import Shape

_PLAIN = re.compile(r"[A-Za-z0-9_.\-]{1,48}")
# Last parts of the names that frameworks give to weights.
_WEIGHT_WORDS = re.compile(
    r"([./_](weight|weights|kernel|Conv2D|MatMul|BiasAdd|depthwise|quantized|ReadVariableOp|"
    r"depthwise_kernel|DequantizeLinear(_Output)?)(:0)?)+$"
)
# Integer types by their numbers in ONNX.
_TYPES = {2: "uint8", 3: "int8", 6: "int32"}
TRAINING = (
    "it is in training mode",
    "call model.eval() before the export; functions of torch need training=self.training",
)
_STATIC_INT8 = "quantize with onnxruntime.quantization.quantize_static, int8 or uint8"


@dataclass(frozen=True)
class QuantizedConstant:
    """A constant after DequantizeLinear: int8 or int32, with their scales and zero points.

    ``axis`` is the one that scales and zero points run along; None for one of each.
    """

    values: Array
    scales: npt.NDArray[np.float64]
    zeros: npt.NDArray[np.int64]
    axis: int | None

    def real(self) -> npt.NDArray[np.float64]:
        """Return ``scale * (value - zero)``."""
        return np.asarray(self.steps() * self._along_axis(self.scales))

    def steps(self) -> npt.NDArray[np.int64]:
        """Return ``value - zero``."""
        return np.asarray(self.values.astype(np.int64) - self._along_axis(self.zeros))

    def _along_axis(self, each: Array) -> Array:
        if self.axis is None:
            return each
        return each.reshape([-1 if i == self.axis else 1 for i in range(self.values.ndim)])


Value = View | QuantizedConstant | Array


@dataclass
class Call:
    """A node, its inputs, and the network that it is added to.

    ``budget`` is how many values a constant that is made here may have.
    """

    node: Node
    values: list[Value | None]
    draft: Draft
    opset: int
    budget: int

    def attribute(self, name: str, default: Any) -> Any:
        """Return an attribute, the default where it is left out."""
        return self.node.attributes.get(name, default)

    def integers(self, name: str, default: list[int], *, least: int = 1) -> list[int]:
        """Return an attribute of as many whole numbers as the default has."""
        values = self.attribute(name, list(default))
        if len(values) != len(default) or not all(
            isinstance(value, int) and least <= value < 2**16 for value in values
        ):
            raise Unsupported(
                f"attribute {name} is {str(values)[:60]}, not {len(default)} numbers from {least} "
                "on",
                "images of two dimensions, and windows of one, are supported",
            )
        return list(values)

    def has(self, index: int) -> bool:
        """Whether the optional input is there."""
        return index < len(self.values) and self.values[index] is not None

    def view(self, index: int = 0) -> View:
        """Return an input that is an activation."""
        value = self.values[index] if self.has(index) else None
        if not isinstance(value, View):
            raise Unsupported(
                f"input {index} is a constant or missing", "only activations are supported there"
            )
        return value

    def image(self, index: int = 0) -> View:
        """Return an activation as batch, channels, height, width, its values reordered if needed.

        (batch, channels, length) has a height of 1. Unsupported is raised if the axes stand in an
        order that only moving the data could give.
        """
        view = self.view(index)
        if len(view.axes) == 3:
            view = replace(view, axes=(*view.axes[:2], "", view.axes[2]))
        if view.is_nchw():
            return view
        if len(view.axes) != 4 or view.axes[0] != view.letters("N"):
            raise Unsupported(
                f"its input has shape {view.shape}, not (batch, channels, height, width)",
                "images and, as (batch, channels, length), windows are supported",
            )
        channels, height, width = view.axes[1:]
        if height + width + channels != view.letters("HWC"):
            raise Unsupported(
                f"the {view.shape[1]} channels of its input are {channels or '1'} of an activation "
                f"with height, width, channels {view.size}: data would have to be transposed",
                "export without Transpose or Reshape between the layers",
            )
        size = (view.shape[2], view.shape[3], view.shape[1])
        return self.draft.emit("reshape", self.name("reshape"), [view], size)

    def constant(self, index: int, what: str) -> Array:
        """Return the real values of an input that must be a constant."""
        value = self.values[index] if self.has(index) else None
        if isinstance(value, QuantizedConstant):
            return value.real()
        if not isinstance(value, np.ndarray):
            raise Unsupported(f"its {what} is not a constant", "only constants are supported there")
        return value

    def vector(self, index: int, channels: int, what: str) -> npt.NDArray[np.float64]:
        """Return a constant with one value per channel."""
        values = self.constant(index, what).astype(np.float64).ravel()
        if values.size != channels:
            raise Unsupported(
                f"its {what} has {values.size} values for {channels} channels",
                "the file contradicts itself, export again",
            )
        return values

    def weights(self, index: int) -> tuple[Array, npt.NDArray[np.float64] | None, int | None]:
        """Return weights with their scales and the scales' axis; neither in a float network."""
        value = self.values[index] if self.has(index) else None
        if isinstance(value, QuantizedConstant) and value.values.dtype == np.int8:
            wrong = value.zeros[value.zeros != 0]
            if not wrong.size:
                return value.values, value.scales, value.axis
            steps = value.steps()
            if np.abs(steps).max(initial=0) > LARGEST_WEIGHT:
                raise Unsupported(
                    f"its weights have zero points other than 0, such as {int(wrong[0])}, and are "
                    f"up to {np.abs(steps).max()} steps from them, at most {LARGEST_WEIGHT} are "
                    "supported",
                    "quantize weights symmetrically: extra_options={'WeightSymmetric': True}; "
                    "quant_pre_process first, which makes initializers of Constant nodes",
                )
            return steps.astype(np.int8), value.scales, value.axis
        if isinstance(value, np.ndarray) and not self.draft.quantized:
            if value.dtype.kind != "f":
                raise Unsupported(f"its weights are {value.dtype}", "float weights are needed")
            return value.astype(np.float32), None, None
        if isinstance(value, np.ndarray):
            raise Unsupported(
                "its weights are float in a quantized network",
                "quantize every layer, or give the float network to `pmt quantize`",
            )
        raise Unsupported(
            "its weights are not a constant",
            "export for inference (model.eval()), with the weights as initializers",
        )

    def whole_numbers(self, index: int, what: str) -> list[int]:
        """Return an input of at most 64 integers, which must be a constant."""
        values = self.constant(index, what)
        if values.dtype.kind not in "iu" or values.size > 64:
            raise Unsupported(f"its {what} are {values.dtype}", "whole numbers are needed")
        return [int(value) for value in values.ravel()]

    def axes(self, rank: int) -> list[int] | None:
        """Return the node's axes, an attribute or an input, counted from the start."""
        axes = self.whole_numbers(1, "axes") if self.has(1) else self.attribute("axes", None)
        if axes is None:
            return None
        if not all(-rank <= axis < rank for axis in axes):
            raise Unsupported(f"its axes are {str(axes)[:40]} of {rank}", "export again")
        return sorted({axis % rank for axis in axes})

    def require_inference(self) -> None:
        """Refuse a Dropout that draws random numbers."""
        if self.has(2) and bool(np.any(self.constant(2, "training_mode"))):
            raise Unsupported(*TRAINING)

    def layer_name(self, stem: str) -> str:
        """Return a layer's name from that of its weights, or from the node's."""
        weights = self.node.inputs[1] if len(self.node.inputs) > 1 else ""
        shortened = _WEIGHT_WORDS.sub("", weights.partition(";")[0])
        named = shortened.split("/")[-1] if shortened != weights else ""
        scope = self._scope()
        for name in (named, ".".join(scope), *scope[-1:]):
            if _PLAIN.fullmatch(name):
                return name
        return stem

    def name(self, stem: str) -> str:
        """Return an op's name from the node's scope (``/layer1/relu/Relu``), or a plain word."""
        name = ".".join(self._scope())
        return name if _PLAIN.fullmatch(name) else stem

    def _scope(self) -> list[str]:
        """Return the modules of a node: ``layer1``, ``conv.0`` of ``/layer1/conv/conv.0/Conv``."""
        modules: list[str] = []
        for part in self.node.name.strip("/").split("/")[:-1]:
            if modules and part.startswith(modules[-1] + "."):
                modules.pop()
            modules.append(part)
        return modules


def memory_view(call: Call, view: View, size: Shape, order: str) -> View:
    """Reshape in memory order: a new activation of another height, width and channels."""
    result = call.draft.emit("reshape", call.name("reshape"), [view], size)
    return image_view(result.tensor, view.batch, size, order, raw=view.raw)


def quantize(call: Call) -> View | Array:
    """Convert QuantizeLinear, of an activation or of float weights."""
    _require_quantized(call)
    scales, zeros, dtype = _parameters(call, _declared_type(call))
    value = call.values[0]
    if isinstance(value, View):
        return _quantized_view(call, value, _one(scales, zeros, dtype), dtype)
    if isinstance(value, QuantizedConstant):
        value = value.real()
    assert value is not None  # by require_defined
    axis = _axis(call, value, scales)
    shape = [-1 if i == axis else 1 for i in range(value.ndim)]
    scale, zero = (part.reshape(shape) for part in (scales, zeros))
    limits = np.iinfo(dtype)
    steps = np.rint(value.astype(np.float32) / scale.astype(np.float32)) + zero
    # NumPy makes a scalar of an array without axes.
    return np.asarray(np.clip(steps, limits.min, limits.max), dtype)


def dequantize(call: Call) -> View | QuantizedConstant:
    """Convert DequantizeLinear, of an activation or of integer weights or biases."""
    _require_quantized(call)
    value = call.values[0]
    if isinstance(value, View):
        stored = call.draft.tensors[value.tensor].stored
        scales, zeros, dtype = _parameters(call, _zero_type(call) or stored or "uint8")
        return _dequantized_view(call, value, _one(scales, zeros, dtype))
    if not isinstance(value, np.ndarray) or str(value.dtype) not in _TYPES.values():
        found = value.dtype if isinstance(value, np.ndarray) else "float"
        raise Unsupported(f"it dequantizes {found} constants", _STATIC_INT8)
    scales, zeros, dtype = _parameters(call, str(value.dtype))
    if dtype == "uint8":
        value, zeros = (value.astype(np.int16) - 128).astype(np.int8), zeros - 128
    return QuantizedConstant(value, scales, zeros, _axis(call, value, scales))


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
        call.require_inference()
        return constant
    raise Unsupported("it changes quantized weights", "change the weights before quantization")


def _require_quantized(call: Call) -> None:
    if not call.draft.quantized:
        raise Unsupported(
            "the network is quantized already",
            "load it as it is: pmt.load(path), or `pmt info model.onnx`",
        )


def _axis(call: Call, value: Array, scales: npt.NDArray[np.float64]) -> int | None:
    """Return the axis that the scales run along; None for a single one."""
    if scales.size == 1:
        return None
    axis, rank = int(call.attribute("axis", 1)), value.ndim
    if not -rank <= axis < rank or value.shape[axis] != scales.size:
        raise Unsupported(
            f"its {scales.size} scales do not fit axis {axis} of shape {value.shape}",
            "the file contradicts itself, export again",
        )
    return axis % rank


def _zero_type(call: Call) -> str:
    """Return the type of the zero point, empty where it is left out."""
    zero = call.values[2]
    return str(zero.dtype) if call.has(2) and isinstance(zero, np.ndarray) else ""


def _declared_type(call: Call) -> str:
    """Return the integer type of QuantizeLinear, which the zero point or an attribute says."""
    declared = call.attribute("output_dtype", 0)
    return _zero_type(call) or (
        _TYPES.get(declared, f"data type {declared}") if declared else "uint8"
    )


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
    require_scales(scales, "scales", "quantize again, calibrated on real data")
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


def _quantized_view(call: Call, view: View, wanted: Quantization, dtype: str) -> View:
    tensor = call.draft.tensors[view.tensor]
    if tensor.quantization is None:
        tensor.quantization = wanted
    elif tensor.quantization != wanted and not view.dropped:
        ones = np.ones(view.size[2])
        view = call.draft.channelwise(view, call.name("requantize"), ones, np.zeros_like(ones))
        call.draft.tensors[view.tensor].quantization = wanted
    if not view.dropped:
        call.draft.tensors[view.tensor].stored = dtype
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
