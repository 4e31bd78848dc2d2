"""The network while nodes are read: layers whose weights are still float, or int8 with scales.

Both importers share it. Scales and shifts of single channels, biases and clippings are taken into
the op before them where nothing else reads its output; else they become a 1x1 depthwise layer.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.formats.onnx.problems import Unsupported
from pmt.formats.onnx.view import Shape, View, image_view
from pmt.net.float_graph import ACTIVATED_KINDS, LAYER_KINDS, fold_batch_norm
from pmt.net.graph import OpKind

__all__ = [
    "KEEPING_KINDS",
    "OPEN",
    "UNIT",
    "Bounds",
    "Draft",
    "DraftOp",
    "DraftTensor",
    "Quantization",
]

Array = npt.NDArray[Any]
Vector = npt.NDArray[np.float64]
Bounds = tuple[float, float]
Quantization = tuple[float, int]  # scale, zero point of int8

OPEN: Bounds = (-np.inf, np.inf)
KEEPING_KINDS: tuple[OpKind, ...] = ("average_pool", "max_pool", "pad", "reshape")
_MOVING_KINDS = ("max_pool", "pad", "reshape")  # no value is computed
_CHANNEL_AXIS = {"conv2d": 0, "fully_connected": 0, "depthwise_conv2d": 2}
_LARGEST_SIDE, _MOST_CHANNELS, _MOST_OPS = 4096, 65_536, 1024  # of one image
UNIT = 64  # int8 weight of a layer that only scales: exact where the factor is 1


@dataclass
class DraftTensor:
    """One activation; ``quantization`` stays None in a float network."""

    name: str
    size: Shape
    quantization: Quantization | None = None


@dataclass
class DraftOp:
    """One op. ``bias`` is real-valued; ``scales`` are those of int8 ``weights``, else None."""

    kind: OpKind
    name: str
    inputs: tuple[int, ...]
    output: int
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    bounds: Bounds = OPEN
    weights: Array | None = None
    scales: Vector | None = None
    bias: Vector | None = None
    sole: bool = False  # nothing else reads what this op reads
    fixed: bool = False  # its weights stand for another op, and are not offered for training


@dataclass
class Draft:
    """Activations, ops in order, and what is done to the input before the first of them.

    The first activation is the network's input times ``factor`` plus ``offset``, channel by
    channel. ``quantized`` says that weights are int8 and that every activation needs a scale.
    ``budget`` is how many weights all layers together may have: a small file must not become a
    large network by naming the same weights again and again.
    """

    quantized: bool
    budget: int
    tensors: list[DraftTensor] = field(default_factory=list)
    ops: list[DraftOp] = field(default_factory=list)
    factor: Vector = field(default_factory=lambda: np.ones(0))
    offset: Vector = field(default_factory=lambda: np.zeros(0))
    dropped: list[str] = field(default_factory=list)
    _names: set[str] = field(default_factory=set)

    def tensor(self, name: str, size: Shape) -> int:
        """Add an activation."""
        self.tensors.append(DraftTensor(name, size))
        return len(self.tensors) - 1

    def unique(self, name: str) -> str:
        """Return an op's name that no other op has."""
        number, result = 2, name
        while result in self._names:
            result, number = f"{name}_{number}", number + 1
        self._names.add(result)
        return result

    def emit(self, kind: OpKind, name: str, sources: list[View], size: Shape, **more: Any) -> View:
        """Add an op and return its output as batch, channels, height, width.

        Raises
        ------
        Unsupported
            If the op reads a value that a quantized network never quantizes.
        """
        for view in sources:
            if self.quantized and view.raw and kind not in KEEPING_KINDS:
                raise Unsupported(
                    f"it reads {self.tensors[view.tensor].name!r} in float, without QuantizeLinear "
                    "and DequantizeLinear between",
                    "quantize every activation (onnxruntime.quantization.quantize_static does)",
                )
        self._require_room(size, more.get("weights"))
        name = self.unique(name)
        target = self.tensor(name, size)
        inputs, sole = tuple(view.tensor for view in sources), all(view.sole for view in sources)
        self.ops.append(DraftOp(kind, name, inputs, target, sole=sole, **more))
        raw = sources[0].raw or kind not in _MOVING_KINDS
        return image_view(target, sources[0].batch, size, "NCHW", raw=raw)

    def _require_room(self, size: Shape, weights: Array | None) -> None:
        if max(size[:2]) > _LARGEST_SIDE or size[2] > _MOST_CHANNELS or len(self.ops) >= _MOST_OPS:
            raise Unsupported(
                f"it makes op {len(self.ops) + 1}, of height, width, channels {size}",
                f"at most {_MOST_OPS} ops, sides of {_LARGEST_SIDE} and {_MOST_CHANNELS} channels "
                "are supported",
            )
        self.budget -= 0 if weights is None else weights.size
        if self.budget < 0:
            raise Unsupported(
                "the layers have far more weights than the file, which uses them again and again",
                "export a network whose layers have weights of their own",
            )

    def writer(self, view: View) -> DraftOp | None:
        """Return the op that may still be changed in place of adding one after it."""
        if not view.sole:
            return None
        return next((op for op in reversed(self.ops) if op.output == view.tensor), None)

    def scale_and_shift(self, view: View, factor: Vector, offset: Vector, name: str) -> View:
        """Return ``view * factor + offset``, vectors over the activation's channels."""
        tensor, op = self.tensors[view.tensor], self.writer(view)
        changeable = view.sole and view.raw and tensor.quantization is None
        if changeable and view.tensor == 0 and np.all(factor != 0):
            self.factor, self.offset = self.factor * factor, self.offset * factor + offset
            return view
        foldable = op is not None and op.kind in LAYER_KINDS and op.bounds == OPEN
        if changeable and op is not None and foldable and self._fold(op, factor, offset):
            return view
        return self.channelwise(view, name, factor, offset)

    def _fold(self, op: DraftOp, factor: Vector, offset: Vector) -> bool:
        assert op.weights is not None
        bias = np.zeros(len(factor)) if op.bias is None else op.bias
        if op.scales is None:
            op.weights, folded = fold_batch_norm(
                op.weights,
                bias,
                channel_axis=_CHANNEL_AXIS[op.kind],
                gamma=factor,
                beta=offset,
                mean=np.zeros_like(factor),
                variance=np.ones_like(factor),
                epsilon=0.0,
            )
            op.bias = folded.astype(np.float64)
            return True
        if np.any(factor == 0) or (np.any(factor < 0) and op.weights.min() == -128):
            return False
        shape = [1] * op.weights.ndim
        shape[_CHANNEL_AXIS[op.kind]] = len(factor)
        op.weights = op.weights * np.sign(factor).astype(np.int8).reshape(shape)
        op.scales, op.bias = op.scales * np.abs(factor), bias * factor + offset
        return True

    def clip(self, view: View, low: float, high: float, name: str) -> View:
        """Return the view's values clipped to [low, high]."""
        op = self.writer(view)
        while op is not None and op.kind in ("max_pool", "reshape") and op.sole:
            op = self._before(op)  # clipping before them is the same
        if op is None or op.kind not in ACTIVATED_KINDS:
            ones = np.ones(view.size[2])
            return self.channelwise(view, name, ones, np.zeros_like(ones), (low, high))
        lower, upper = (float(np.clip(bound, low, high)) for bound in op.bounds)
        op.bounds = (lower, upper)
        return view

    def _before(self, op: DraftOp) -> DraftOp | None:
        return next((other for other in self.ops if other.output == op.inputs[0]), None)

    def channelwise(
        self,
        view: View,
        name: str,
        factor: Vector,
        offset: Vector,
        bounds: Bounds = OPEN,
    ) -> View:
        """Add a 1x1 depthwise layer for ``clip(view * factor + offset)``."""
        self._require_room(view.size, None)
        parameters: dict[str, Any] = {"weights": factor.astype(np.float32).reshape(1, 1, -1)}
        if self.quantized:
            size = np.where(factor == 0, 1.0, np.abs(factor))
            parameters["weights"] = (UNIT * np.sign(factor)).astype(np.int8).reshape(1, 1, -1)
            parameters["scales"] = size / UNIT
        result = self.emit(
            "depthwise_conv2d",
            name,
            [view],
            view.size,
            bounds=bounds,
            fixed=bool(np.all(factor == 1) and np.all(offset == 0)),
            bias=np.array(offset, np.float64),
            **parameters,
        )
        return replace(result, axes=view.axes)
