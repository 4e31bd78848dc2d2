"""The moment of a plan at which most is alive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pmt import _core

__all__ = ["PlanMoment", "peak_moment"]


@dataclass(frozen=True)
class PlanMoment:
    """What is alive while an op runs, in the main pass or in the queries of a layer.

    Attributes
    ----------
    layer : int or None
        The layer that is queried; None in the main pass.
    op : int
        The op that runs.
    buffers : tuple of dict
        Those alive, as the core's plan lists them.
    """

    layer: int | None
    op: int
    buffers: tuple[dict[str, Any], ...]

    @property
    def bytes(self) -> int:
        """Sum of the buffers."""
        return sum(buffer["bytes"] for buffer in self.buffers)


def peak_moment(device: _core.DeviceMemory, layers: Sequence[int]) -> PlanMoment:
    """Return the moment at which most is alive.

    Parameters
    ----------
    device : _core.DeviceMemory
        The plan.
    layers : sequence of int
        Op indices of the layers under training.

    Returns
    -------
    PlanMoment
        The first of the largest.
    """
    layer, op = device.peak(list(layers))
    buffers = device.plan() if layer is None else device.query_plan(layer)
    kept = () if layer is None else ("main",)  # what the main pass keeps is there throughout
    alive = (b for b in buffers if b["pass"] in kept or b["first"] <= op <= b["last"])
    return PlanMoment(layer, op, tuple(alive))
