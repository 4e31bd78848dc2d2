"""Memory of a forward pass alone: this engine beside TensorFlow Lite Micro."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pmt import _core
from pmt.baselines.engines.tflite_micro import micro_arena
from pmt.formats.tflite.exporter import tflite_model
from pmt.model import Model
from pmt.train.clean_statistics import without_statistics
from pmt.train.costs.device_memory import device_options, zeroth_order_memory
from pmt.train.options import TrainingOptions

__all__ = ["Backend", "our_backends", "tflite_micro_backend"]


@dataclass(frozen=True)
class Backend:
    """Bytes of a forward pass.

    Attributes
    ----------
    name : str
        The engine.
    activations : int
        Activations and kernels' scratch at the peak.
    bookkeeping : int
        Other bytes of the arena.
    model : int
        The file with the network, in flash.
    """

    name: str
    activations: int
    bookkeeping: int
    model: int

    @property
    def arena(self) -> int:
        """RAM, but for stack and variables."""
        return self.activations + self.bookkeeping

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {**asdict(self), "arena": self.arena}


def our_backends(model: Model) -> list[Backend]:
    """Count this engine's forward: as it is, with plain kernels, and without line buffers.

    A device trains, and so the forward is the main pass of training the last layer alone; of that
    arena neither the layer's parameters nor the losses count.
    """
    options = device_options(TrainingOptions(batch=1, queries=2))
    layers = [model.layers[-1].index]
    given = (model.core, options, layers, 1)
    device = _core.DeviceMemory(*given)
    buffers = zeroth_order_memory(model, options, layers).buffers
    image = len(without_statistics(model).image())
    plans = {
        "this engine, DSP kernels": device,
        "this engine, plain kernels": _core.DeviceMemory(
            *given, portable=True, streams=device.segments()
        ),
        "this engine, whole tensors": _core.DeviceMemory(*given, streams=[]),
    }
    return [Backend(name, _extent(plan), buffers, image) for name, plan in plans.items()]


def _extent(device: _core.DeviceMemory) -> int:
    """Bytes up to the end of the last buffer of the main pass."""
    return max(int(buffer["offset"] + buffer["bytes"]) for buffer in device.plan())


def tflite_micro_backend(model: Model) -> Backend:
    """Measure TensorFlow Lite Micro's forward of the network as pmt's ``.tflite``.

    Raises
    ------
    ImportError
        If the package tflite or tflite_micro is missing.
    ValueError
        If the network cannot be written as ``.tflite``, or not run.
    """
    content = tflite_model(without_statistics(model).to_graph())
    tensors = model.core.tensors()
    activations = sum(int(t["height"] * t["width"] * t["channels"]) for t in tensors)
    arena = micro_arena(content, activations)
    return Backend("TensorFlow Lite Micro", arena.activations, arena.bookkeeping, len(content))
