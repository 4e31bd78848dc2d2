"""Activations that are alive in a forward pass."""

from __future__ import annotations

from typing import Any

from pmt.model import Model
from pmt.train.costs.memory import Moment

__all__ = ["inference_moments", "lifetimes"]


def inference_moments(model: Model, value: int = 1) -> list[Moment]:
    """Return the activations alive at each op of a forward pass, ``value`` bytes each."""
    ops, tensors = model.core.ops(), model.core.tensors()
    sizes = [int(t["height"] * t["width"] * t["channels"]) * value for t in tensors]
    made, used = lifetimes(ops)
    moments = []
    for now in range(len(ops)):
        alive = [t for t in used if made[t] <= now <= used[t]]
        image = sizes[model.core.input_tensor] if model.core.input_tensor in alive else 0
        moments.append(Moment(activations=sum(sizes[t] for t in alive) - image, input=image))
    return moments


def lifetimes(ops: list[dict[str, Any]]) -> tuple[dict[int, int], dict[int, int]]:
    """Return the ops that make each tensor and read it last; op 0 makes the network's input."""
    made: dict[int, int] = {}
    used: dict[int, int] = {}
    for op in ops:
        for tensor in op["inputs"]:
            made.setdefault(tensor, 0)
            used[tensor] = op["index"]
        made[op["output"]] = used[op["output"]] = op["index"]
    return made, used
