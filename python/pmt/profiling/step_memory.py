"""The contents of memory during a training step of one image, operation by operation."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pmt import _core
from pmt._util.arrays import Int64Array
from pmt.baselines.backprop.cost import backward_moments
from pmt.baselines.backprop.trainer import BackpropTrainer
from pmt.model import Model
from pmt.profiling.profile import Profile, backward_arithmetic, method_trainer, profile
from pmt.train.costs.memory import Moment

# Parts of memory, from the bottom of a picture to its top, with names for a legend.
KINDS = {
    "weights": "trained weights and biases",
    "optimizer": "optimizer state",
    "tables": "loss tables, seeds",
    "weight_gradients": "weight gradients",
    "buffers": "working buffers",
    "input": "input",
    "activations": "activations",
    "kept": "activations kept for queries",
    "query": "activations of a query",
    "perturbed": "perturbed weights",
    "scratch": "scratch of kernels",
    "saved_activations": "saved activations",
    "masks": "clamp masks",
    "activation_gradients": "activation gradients",
}


@dataclass(frozen=True)
class Stretch:
    """Operations ``begin`` to ``end`` (not included) of a step that belong together."""

    title: str
    begin: int
    end: int


@dataclass(frozen=True)
class Buffer:
    """Bytes from ``offset`` on, alive from operation ``begin`` to ``end`` (not included)."""

    kind: str
    what: str
    offset: int
    bytes: int
    begin: int
    end: int


@dataclass(frozen=True)
class StepMemory:
    """Memory over a step of one image."""

    method: str  # name of the method
    # The forward pass, the queries of a layer, the backward pass, ..., in order of time.
    stretches: tuple[Stretch, ...]
    buffers: tuple[Buffer, ...]  # all that is ever alive; `kind` is one of `KINDS`
    # Whether the activations lie at the addresses of the core's plan, after all that stays
    # throughout. Otherwise buffers are piled up, with nothing lost between them.
    planned: bool
    bytes: int  # bytes that are taken in all: of a plan the arena, otherwise the most alive at once

    @property
    def operations(self) -> int:
        """Number of operations."""
        return self.stretches[-1].end

    def alive(self) -> Int64Array:
        """Return the bytes alive at every operation, shape (operations,)."""
        changes = np.zeros(self.operations + 1, np.int64)
        for buffer in self.buffers:
            changes[buffer.begin] += buffer.bytes
            changes[buffer.end] -= buffer.bytes
        return np.asarray(changes.cumsum()[:-1])


def step_memory(
    model: Model, method: str, *, scheme: str | None = None, **changes: Any
) -> StepMemory:
    """List the contents of memory while a method trains on an image.

    Of zeroth-order training it is the core's plan for a device: the main pass, and where it stops
    for the queries of a layer one of them. The gradients, which follow the last image, are not part
    of the plan: with one image, their sums take the place of activations.
    Of back-propagation it is the lower bound of ``pmt profile``. Arguments and errors are those of
    :func:`pmt.profiling.profile.profile_method`.
    """
    trainer = method_trainer(model, method, scheme, changes)
    if isinstance(trainer, BackpropTrainer):
        return _backward_step(model, method, trainer)
    return _planned_step(model, profile(model, method, trainer))


def _planned_step(model: Model, found: Profile) -> StepMemory:
    device, options = found.device, found.options
    assert device is not None
    assert options is not None
    parts = device.parts()
    resident = {
        "weights": parts["weights"] + parts["biases"],
        "tables": parts["tables"],
        "weight_gradients": parts["gradient"],
        "buffers": parts["lists"] + parts["buffers"],
    }
    drawing = _Drawing(model, device, sum(resident.values()))
    trainer = _core.Trainer(model.core, options.to_core(), found.ops, 1, 1)
    queried = [x["op"] for x in trainer.layers() if x["estimator"] != "closed_form"]
    for layer in queried[:1] if options.scope == "model_wise" else queried:
        drawing.query(layer)
    drawing.forward(model.core.op_count)
    stretches = tuple(drawing.stretches)
    stays = _piled(resident, 0, stretches[-1].end, 0)
    buffers = (*stays, *_merged(drawing.buffers))
    return StepMemory(found.method, stretches, buffers, True, sum(parts.values()))


class _Drawing:
    """Collects the buffers of a step, pass by pass."""

    def __init__(self, model: Model, device: _core.DeviceMemory, base: int) -> None:
        self.device = device
        self.base = base
        self.plan = device.plan()
        self.image = model.core.input_tensor
        self.names = {op["index"]: op["name"] for op in model.core.ops()}
        self.outputs = {op["index"]: op["output"] for op in model.core.ops()}
        self.begins = {
            op: begin for begin, end, _ in device.segments() for op in range(begin, end + 1)
        }
        self.done = 0
        self.stretches: list[Stretch] = []
        self.buffers: list[Buffer] = []

    def forward(self, end: int) -> None:
        """Let the main pass come as far as an op, which is not included."""
        if end <= self.done:
            return
        start = self._begin("forward", end - self.done)
        for buffer in self.plan:
            self._add(buffer, "activations", start - self.done, self.done, end)
        self.done = end

    def query(self, layer: int) -> None:
        """Stop the main pass where a layer's queries need it, and run one of them."""
        there = self.device.query_plan(layer)
        kept = [buffer for buffer in there if buffer["pass"] == "main"]
        # A query of nodes starts from the layer's output, which the main pass then has made.
        output = any(buffer["tensor"] == self.outputs[layer] for buffer in kept)
        first = self.begins.get(layer, layer)
        self.forward(layer + 1 if output else first)
        ops = len(self.names)
        start = self._begin(f"query of {self.names[layer]}", ops - first)
        for buffer in there:
            whole = {**buffer, "first": first, "last": ops - 1} if buffer in kept else buffer
            kind = "kept" if buffer in kept else "query"
            self._add(whole, kind, start - first, first, ops)

    def _begin(self, title: str, count: int) -> int:
        start = self.stretches[-1].end if self.stretches else 0
        self.stretches.append(Stretch(title, start, start + count))
        return start

    def _add(self, buffer: dict[str, Any], kind: str, shift: int, first: int, end: int) -> None:
        """Add the live part of a buffer between two ops; the network's output outlives them."""
        begin, last = max(buffer["first"], first), min(buffer["last"] + 1, end)
        if begin >= last:
            return
        special = {"scratch": "scratch", "perturbed weights": "perturbed"}
        if buffer["tensor"] < 0:
            kind = special[buffer["what"]]
        elif buffer["tensor"] == self.image and buffer["pass"] == "main":
            kind = "input"
        offset = self.base + buffer["offset"]
        self.buffers.append(
            Buffer(kind, buffer["what"], offset, buffer["bytes"], begin + shift, last + shift)
        )


def _backward_step(model: Model, method: str, trainer: BackpropTrainer) -> StepMemory:
    found = profile(model, method, trainer)
    memory, ops = found.memory, model.core.op_count
    arithmetic = backward_arithmetic(trainer.options)
    scheme = trainer.scheme(model)
    moments = backward_moments(model, scheme, arithmetic, batch=trainer.options.batch)
    resident = {"weights": memory.weights + memory.biases, "optimizer": memory.optimizer}
    base = sum(resident.values())
    buffers = list(_piled(resident, 0, len(moments), 0))
    for now, moment in enumerate(moments):
        buffers += _piled(_bytes_by_kind(moment), now, now + 1, base)
    stretches = (Stretch("forward", 0, ops), Stretch("backward", ops, len(moments)))
    return StepMemory(method, stretches, tuple(_merged(buffers)), False, memory.sram)


def _bytes_by_kind(moment: Moment) -> dict[str, int]:
    return {kind: getattr(moment, kind) for kind in KINDS if hasattr(moment, kind)}


def _piled(sizes: dict[str, int], begin: int, end: int, base: int) -> list[Buffer]:
    """Put buffers one on the other, in the order of the kinds."""
    piled = []
    for kind in KINDS:
        if size := sizes.get(kind, 0):
            piled.append(Buffer(kind, KINDS[kind], base, size, begin, end))
            base += size
    return piled


def _merged(buffers: Iterable[Buffer]) -> Sequence[Buffer]:
    """Join buffers that follow each other in time and are the same otherwise."""
    merged: list[Buffer] = []
    last: dict[tuple[str, str, int, int], int] = {}
    for b in buffers:
        key = (b.kind, b.what, b.offset, b.bytes)
        place = last.get(key, -1)
        if place >= 0 and merged[place].end == b.begin:
            merged[place] = Buffer(*key, merged[place].begin, b.end)
        else:
            last[key] = len(merged)
            merged.append(b)
    return merged
