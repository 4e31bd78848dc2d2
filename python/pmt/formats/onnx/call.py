"""One node as a converter sees it: its attributes, and its inputs as activations or constants."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.formats.onnx.draft import Draft
from pmt.formats.onnx.file import Node, Unsupported
from pmt.formats.onnx.view import View, image_view
from pmt.net.graph import Shape

Array = npt.NDArray[Any]


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
        scales, zeros = self.scales, self.zeros
        if self.axis is not None:
            shape = [-1 if i == self.axis else 1 for i in range(self.values.ndim)]
            scales, zeros = scales.reshape(shape), zeros.reshape(shape)
        return np.asarray((self.values.astype(np.int64) - zeros) * scales)


Value = View | QuantizedConstant | Array
_PLAIN = re.compile(r"[A-Za-z0-9_.\-]{1,48}")
# Last parts of the names that frameworks give to weights.
_WEIGHT_WORDS = re.compile(
    r"([./_](weight|weights|kernel|Conv2D|MatMul|BiasAdd|depthwise|quantized|ReadVariableOp|"
    r"depthwise_kernel|DequantizeLinear(_Output)?)(:0)?)+$"
)


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
        """Return an attribute of the default's kind."""
        value = self.node.attributes.get(name, default)
        if default is not None and not isinstance(value, type(default)):
            raise Unsupported(f"attribute {name} is {str(value)[:40]!r}", "export again")
        return value

    def integers(self, name: str, default: list[int], *, least: int = 1) -> list[int]:
        """Return an attribute of as many whole numbers as the default has."""
        values = self.attribute(name, list(default))
        if len(values) != len(default) or not all(
            isinstance(value, int) and least <= value < 2**16 for value in values
        ):
            raise Unsupported(
                f"attribute {name} is {str(values)[:60]}, not {len(default)} numbers from {least} "
                "on",
                "only two-dimensional images are supported",
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

        Unsupported is raised if the axes stand in an order that only moving the data could give.
        """
        view = self.view(index)
        if view.is_nchw():
            return view
        if len(view.axes) != 4 or view.axes[0] != view.letters("N"):
            raise Unsupported(
                f"its input has shape {view.shape}, not (batch, channels, height, width)",
                "only two-dimensional images are supported",
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
            if wrong.size:
                raise Unsupported(
                    f"its weights have zero points other than 0, such as {int(wrong[0])}",
                    "quantize weights symmetrically: extra_options={'WeightSymmetric': True}",
                )
            return value.values, value.scales, value.axis
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
        if not isinstance(axes, list) or not all(
            isinstance(axis, int) and -rank <= axis < rank for axis in axes
        ):
            raise Unsupported(f"its axes are {str(axes)[:40]} of {rank}", "export again")
        return sorted({axis % rank for axis in axes})

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
