"""Memory that zeroth-order training takes on a device, as the core counts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pmt import _core
from pmt.model import Model
from pmt.train.costs.memory import Memory
from pmt.train.options import TrainingOptions

__all__ = [
    "PlanMoment",
    "arena_bytes",
    "device_options",
    "peak_moment",
    "portable_arena_excess",
    "zeroth_order_memory",
]

# Perturbed weights made at once. The result does not depend on it; memory does, five bytes each.
_WEIGHT_TILE_BYTES = 4096


def device_options(options: TrainingOptions) -> _core.Options:
    """Return the core's options as they are on a device; train there with no others."""
    core = options.to_core()
    core.weight_tile_bytes = _WEIGHT_TILE_BYTES
    return core


def arena_bytes(
    model: _core.Model,
    options: _core.Options,
    layers: Sequence[int],
    batch: int,
    settings: Sequence[_core.LayerSettings] = (),
) -> int:
    """Return the exact size of the target's arena.

    It holds the list of the layers, their settings, which ops stream, weights (int8; not where
    biases alone are trained) and biases (int32), and the trainer's own memory for one worker:
    activations, queries, gradient sums, the optimizer state.

    Parameters
    ----------
    model : _core.Model
        The network.
    options : _core.Options
        From :func:`device_options`.
    layers : sequence of int
        Op indices, ascending.
    batch : int
        Largest number of samples in a step.
    settings : sequence of _core.LayerSettings, optional
        One for each layer; by default the options'.

    Returns
    -------
    int
        Bytes, a multiple of 16.
    """
    device = _core.DeviceMemory(model, options, layers, batch, settings)
    return sum(device.parts().values())


def portable_arena_excess(
    model: _core.Model,
    options: _core.Options,
    layers: Sequence[int],
    batch: int,
    settings: Sequence[_core.LayerSettings] = (),
) -> int:
    """Return what a processor without Arm's DSP extension takes beyond :func:`arena_bytes`.

    Its kernels, the portable ones, lay out their scratch in another way; what streams is the same,
    as an export has decided it. The arguments are those of :func:`arena_bytes`.

    Returns
    -------
    int
        Bytes, a multiple of 16; 0 where it takes less.
    """
    given = (model, options, layers, batch, settings)
    device = _core.DeviceMemory(*given)
    portable = _core.DeviceMemory(*given, portable=True, streams=device.segments())
    return max(0, portable.arena_bytes - device.arena_bytes)


def zeroth_order_memory(
    model: Model,
    options: _core.Options,
    layers: Sequence[int],
    *,
    batch: int = 1,
    settings: Sequence[_core.LayerSettings] = (),
) -> Memory:
    """Count the peak memory of a step.

    Parameters
    ----------
    model : Model
        The network.
    options : _core.Options
        From :func:`device_options`.
    layers : sequence of int
        Op indices, ascending.
    batch : int
        Images of a step.
    settings : sequence of _core.LayerSettings, optional
        One for each layer; by default the options'. Estimators decide what streams, queries how
        many losses there are.

    Returns
    -------
    Memory
        Parts that add up to :func:`arena_bytes`, to the byte.
    """
    device = _core.DeviceMemory(model.core, options, layers, batch, settings)
    parts = device.parts()
    peak = peak_moment(device, layers)
    image = sum(b["bytes"] for b in peak.buffers if b["tensor"] == model.core.input_tensor)
    parameters = sum(x.weights + 4 * x.biases for x in model.layers)
    return Memory(
        frozen=parameters - parts["weights"] - parts["biases"],
        weights=parts["weights"],
        biases=parts["biases"],
        activations=parts["activations"] - image,
        input=image,
        weight_gradients=parts["gradient"],
        optimizer=parts["optimizer"],
        tables=parts["tables"],
        buffers=parts["lists"] + parts["buffers"],
    )


@dataclass(frozen=True)
class PlanMoment:
    """Live bytes while an op runs, in the main pass or in the queries of a layer.

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
    layer, op = device.peak(layers)
    buffers = device.plan() if layer is None else device.query_plan(layer)
    kept = () if layer is None else ("main",)  # what the main pass keeps is there throughout
    alive = (b for b in buffers if b["pass"] in kept or b["first"] <= op <= b["last"])
    return PlanMoment(layer, op, tuple(alive))
