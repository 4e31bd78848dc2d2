"""Memory of a method on a device, by part; zeroth-order training's as the core counts it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from pmt import _core
from pmt.model import Model


@dataclass(frozen=True)
class Moment:
    """Live bytes at one moment of a pass."""

    activations: int = 0
    input: int = 0
    saved_activations: int = 0
    masks: int = 0
    activation_gradients: int = 0
    weight_gradients: int = 0

    @property
    def total(self) -> int:
        """Sum of the parts."""
        return sum(getattr(self, field.name) for field in fields(self))


@dataclass(frozen=True)
class Memory:
    """Bytes of every part at the moment of the peak."""

    frozen: int = 0  # weights and biases that do not change: flash
    # Those that do: SRAM.
    weights: int = 0
    biases: int = 0
    # Activations of the forward pass (zeroth order: of the main pass and of a query).
    activations: int = 0
    input: int = 0  # the image, where it is still needed at the peak
    saved_activations: int = 0  # inputs of layers, kept for their weight gradients
    masks: int = 0  # a bit for each output that tells whether it stood at a clamp
    activation_gradients: int = 0  # gradients of activations that are alive at once
    weight_gradients: int = 0  # gradients of weights and biases, or the sums that become them
    optimizer: int = 0  # momentum of back-propagation, shadow weights
    tables: int = 0  # losses of queries, and the states of their random numbers
    # Working memory of kernels, perturbed weights, bookkeeping: counted for zeroth-order training
    # only, where it is known exactly.
    buffers: int = 0

    @property
    def flash(self) -> int:
        """Bytes that never change."""
        return self.frozen

    @property
    def sram(self) -> int:
        """Peak of everything else."""
        return sum(getattr(self, part) for part in PARTS)

    def to_json(self) -> dict[str, int]:
        """Return the figures for JSON."""
        return {**asdict(self), "sram": self.sram}


# Parts of SRAM with their names, in the order of tables and plots.
PARTS = {
    "weights": "trainable weights",
    "biases": "trainable biases",
    "activations": "activations",
    "input": "input",
    "saved_activations": "saved activations",
    "masks": "clamp masks",
    "activation_gradients": "activation gradients",
    "weight_gradients": "weight gradients",
    "optimizer": "optimizer state",
    "tables": "loss tables, seeds",
    "buffers": "working buffers",
}


def arena_bytes(
    model: _core.Model, options: _core.Options, layers: Sequence[int], batch: int
) -> int:
    """Return the exact size of the target's arena, a multiple of 16 bytes.

    It holds the list of the layers, which ops stream, weights (int8; not where
    only biases are trained) and biases (int32), and the trainer's own memory for one worker:
    activations, queries, gradient sums. Layers are op
    indices in ascending order.
    """
    device = _core.DeviceMemory(model, options, layers, batch)
    return sum(device.parts().values())


def portable_arena_excess(
    model: _core.Model, options: _core.Options, layers: Sequence[int], batch: int
) -> int:
    """Return the bytes beyond :func:`arena_bytes` on a processor without Arm's DSP extension.

    Its kernels, the portable ones, lay out their scratch in another way; what streams is the same,
    as an export has decided it.
    """
    given = (model, options, layers, batch)
    device = _core.DeviceMemory(*given)
    portable = _core.DeviceMemory(*given, portable=True, streams=device.segments())
    return max(0, portable.arena_bytes - device.arena_bytes)


def zeroth_order_memory(
    model: Model, options: _core.Options, layers: Sequence[int], *, batch: int = 1
) -> Memory:
    """Count the peak memory of a step, in parts whose sum is :func:`arena_bytes`, to the byte."""
    device = _core.DeviceMemory(model.core, options, layers, batch)
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
        tables=parts["tables"],
        buffers=parts["lists"] + parts["buffers"],
    )


@dataclass(frozen=True)
class PlanMoment:
    """Live bytes while an op runs, in the main pass or in the queries of a layer."""

    layer: int | None  # the layer that is queried; None in the main pass
    op: int  # the op that runs
    buffers: tuple[dict[str, Any], ...]  # those alive, as the core's plan lists them

    @property
    def bytes(self) -> int:
        """Sum of the buffers."""
        return sum(buffer["bytes"] for buffer in self.buffers)


def peak_moment(device: _core.DeviceMemory, layers: Sequence[int]) -> PlanMoment:
    """Return the moment of a plan at which most is alive, the first of equals."""
    layer, op = device.peak(layers)
    buffers = device.plan() if layer is None else device.query_plan(layer)
    kept = () if layer is None else ("main",)  # what the main pass keeps is there throughout
    alive = (b for b in buffers if b["pass"] in kept or b["first"] <= op <= b["last"])
    return PlanMoment(layer, op, tuple(alive))


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
