"""Which parts of a network back-propagation passes through, and what it keeps for that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pmt.baselines.backprop.scheme import UpdateScheme, input_channels
from pmt.model import Model

__all__ = ["BackwardGraph"]

_LAYERS = ("conv2d", "depthwise_conv2d", "fully_connected")


@dataclass(frozen=True)
class BackwardGraph:
    """The backward pass of a scheme.

    Attributes
    ----------
    ops : list of dict
        All ops of the network, in order.
    elements : list of int
        Values of each tensor.
    scheme : UpdateScheme
        What is trained.
    reaches : frozenset of int
        Tensors whose gradient is formed: something trained lies before them.
    first : int
        The first op that is trained: the backward pass ends there.
    """

    ops: list[dict[str, Any]]
    elements: list[int]
    scheme: UpdateScheme
    reaches: frozenset[int]
    first: int

    @classmethod
    def of(cls, model: Model, scheme: UpdateScheme) -> BackwardGraph:
        """Find the backward pass of a scheme."""
        ops = model.core.ops()
        tensors = model.core.tensors()
        trained = scheme.by_op()
        reaches: set[int] = set()
        for op in ops:
            if op["index"] in trained or any(tensor in reaches for tensor in op["inputs"]):
                reaches.add(op["output"])
        elements = [int(t["height"] * t["width"] * t["channels"]) for t in tensors]
        return cls(ops, elements, scheme, frozenset(reaches), scheme.layers[0].op)

    def passes(self, op: dict[str, Any]) -> bool:
        """Whether an op's input gets a gradient."""
        return any(tensor in self.reaches for tensor in op["inputs"])

    def input_gradient_macs(self) -> int:
        """Multiply-accumulates of the gradients by layers' inputs: as many as their forwards."""
        return sum(int(op["macs"]) for op in self.ops if self.passes(op))

    def weight_gradient_macs(self, model: Model) -> int:
        """Multiply-accumulates of the weight gradients, by the share of channels trained."""
        return sum(
            int(self.ops[update.op]["macs"]) * update.channels // input_channels(model, update.op)
            for update in self.scheme.layers
        )

    def mask_bits(self, op: dict[str, Any], *, exact_logits: bool) -> int:
        """Bits that tell which outputs of an op stood at a clamp.

        One for each value, where a gradient comes back through the op; none for logits that are
        read before they are rounded, or for ops that only move or average values.
        """
        last = op["index"] == len(self.ops) - 1
        clamps = op["kind"] in (*_LAYERS, "add")
        if op["output"] not in self.reaches or not clamps or (last and exact_logits):
            return 0
        return int(self.elements[op["output"]])

    def kept_bytes(self, model: Model, bytes_each: int) -> dict[int, tuple[int, int]]:
        """Return what is kept of each tensor for weight gradients: bytes, and the first reader.

        A tensor that several layers read is kept once, in the channels that most of them need.
        """
        kept: dict[int, tuple[int, int]] = {}
        for update in self.scheme.layers:
            if update.channels == 0:
                continue
            tensor = self.ops[update.op]["inputs"][0]
            part = self.elements[tensor] * update.channels // input_channels(model, update.op)
            size, first = kept.get(tensor, (0, update.op))
            kept[tensor] = (max(size, part * bytes_each), min(first, update.op))
        return kept
