"""The moment of a plan at which most is alive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    return max(_moments(device, layers), key=lambda moment: moment.bytes)


def _moments(device: _core.DeviceMemory, layers: Sequence[int]) -> Iterator[PlanMoment]:
    main = device.plan()
    for op in range(_ops(main)):
        yield PlanMoment(None, op, tuple(b for b in main if b["first"] <= op <= b["last"]))
    for layer in layers:
        buffers = device.query_plan(layer)
        kept = [buffer for buffer in buffers if buffer["pass"] == "main"]
        own = [buffer for buffer in buffers if buffer["pass"] == "query"]
        for op in range(min((b["first"] for b in own), default=0), _ops(own)):
            alive = [b for b in own if b["first"] <= op <= b["last"]]
            yield PlanMoment(layer, op, (*kept, *alive))


def _ops(buffers: Sequence[dict[str, Any]]) -> int:
    return max((buffer["last"] for buffer in buffers), default=0)
