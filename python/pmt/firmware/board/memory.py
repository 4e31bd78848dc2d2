"""Memory on a board: of a method, counted in three ways, and of a forward alone by engine."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import IO, Any

import numpy as np

from pmt import _core
from pmt._util.extras import import_extra
from pmt.firmware.board.linked import LinkedSizes, link_firmware, require_linked
from pmt.firmware.export.memory import PlannedSizes, planned_sizes
from pmt.firmware.export.target import Target
from pmt.formats.tflite.exporter import tflite_model
from pmt.model import Model
from pmt.research.profile import Profile, analytic_bytes
from pmt.train.costs.memory import device_options, zeroth_order_memory
from pmt.train.options import TrainingOptions
from pmt.train.prepare import without_statistics

__all__ = [
    "Backend",
    "BoardMemory",
    "board_memory",
    "micro_arena",
    "our_backends",
    "tflite_micro_backend",
    "with_linked",
]

# So many times the file and all activations are beyond any network's needs.
_ROOM = 10
_STDERR = 2


@dataclass(frozen=True)
class BoardMemory:
    """Bytes of a method on a board.

    Attributes
    ----------
    method : str
        Its name.
    target : Target
        The board.
    analytic : int
        RAM by :func:`pmt.research.profile.analytic_bytes`.
    frozen : int
        Frozen weights and biases in flash, the least that it takes.
    planned : PlannedSizes or None
        Sizes that an export reserves; None where the core does not train the method.
    linked : LinkedSizes or None
        Sizes that the linker laid out; None where nothing was built.
    """

    method: str
    target: Target
    analytic: int
    frozen: int
    planned: PlannedSizes | None = None
    linked: LinkedSizes | None = None

    @property
    def is_bound(self) -> bool:
        """Whether nothing but a lower bound is known, so that what fits it might not fit."""
        return self.planned is None

    @property
    def ram_over(self) -> int:
        """Bytes of RAM beyond the board's, 0 where it fits; by the surest of the three counts."""
        sizes = self.linked or self.planned
        ram = self.analytic if sizes is None else sizes.ram
        return max(0, ram - self.target.ram.bytes)

    @property
    def flash_over(self) -> int:
        """Bytes of flash beyond the board's, 0 where it fits; by the surest of the three counts."""
        sizes = self.linked or self.planned
        flash = self.frozen if sizes is None else sizes.flash
        return max(0, flash - self.target.flash.bytes)

    @property
    def fits(self) -> bool:
        """Whether RAM and flash suffice."""
        return self.ram_over == 0 and self.flash_over == 0

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        planned, linked = self.planned, self.linked
        totals = {} if planned is None else {"ram": planned.ram, "flash": planned.flash}
        return {
            "method": self.method,
            "analytic": self.analytic,
            "frozen": self.frozen,
            "planned": None if planned is None else {**asdict(planned), **totals},
            "linked": None if linked is None else linked.to_json(),
            "is_bound": self.is_bound,
            "fits": self.fits,
            "ram_over": self.ram_over,
            "flash_over": self.flash_over,
        }


def board_memory(model: Model, profile: Profile, target: Target) -> BoardMemory:
    """Count a method's memory on a board; nothing is built."""
    planned = None
    if profile.options is not None:
        core = device_options(profile.options)
        planned = planned_sizes(target, model, core, profile.ops, profile.batch)
    analytic, frozen = analytic_bytes(model, profile), profile.memory.flash
    return BoardMemory(profile.method, target, analytic, frozen, planned)


def with_linked(model: Model, rows: Sequence[BoardMemory]) -> list[BoardMemory]:
    """Build the firmware of every row of one board that is planned and fits.

    Raises
    ------
    ValueError, FileNotFoundError, ChildProcessError, TimeoutError
        As :func:`link_firmware`.
    """
    require_linked(rows[0].target)
    arenas = {row.method: row.planned.arena for row in rows if row.planned is not None and row.fits}
    if not arenas:
        return list(rows)
    image = without_statistics(model).image()
    sizes = link_firmware(rows[0].target, image, list(arenas.values()))
    linked = dict(zip(arenas, sizes, strict=True))
    return [replace(row, linked=linked.get(row.method)) for row in rows]


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
    head, tail = micro_arena(content, activations)
    return Backend("TensorFlow Lite Micro", head, tail, len(content))


def micro_arena(content: bytes, activations: int) -> tuple[int, int]:
    """Run a ``.tflite`` with int8 ends once, and return the interpreter's own record of its arena.

    Parameters
    ----------
    content : bytes
        The file.
    activations : int
        Bytes of all activations together, to make an arena that suffices.

    Returns
    -------
    head : int
        Bytes of activations and kernels' scratch, planned with their lifetimes.
    tail : int
        Bytes of tensors, operators, and what kernels prepare; with pointers of this machine. With
        16 bytes less than both the interpreter refuses to run.

    Raises
    ------
    ImportError
        If the package tflite_micro is missing.
    ValueError
        If the interpreter cannot run the file.
    """
    need = "TensorFlow Lite Micro needs the package tflite_micro"
    runtime = import_extra("tflite_micro", need, "tflm").runtime
    room = _ROOM * 16 * ((len(content) + activations) // 16 + 1)  # the tail is aligned from the end
    with tempfile.TemporaryFile() as log:
        failure = None
        with _standard_error(log):
            try:
                interpreter = runtime.Interpreter.from_bytes(content, arena_size=room)
                shape = interpreter.get_input_details(0)["shape"]
                interpreter.set_input(np.zeros(shape, np.int8), 0)
                interpreter.invoke()
                interpreter.print_allocations()
            except RuntimeError as error:
                failure = error
        log.seek(0)
        printed = log.read().decode(errors="replace")
    if failure is not None:
        reason = " ".join([str(failure), *printed.split("\n")[:1]])
        raise ValueError(f"TensorFlow Lite Micro cannot run the network: {reason}") from failure
    found = dict(re.findall(r"Arena allocation (head|tail) (\d+) bytes", printed))
    if len(found) < 2:
        raise ValueError("this version of tflite_micro does not print what its arena holds")
    return int(found["head"]), int(found["tail"])


@contextmanager
def _standard_error(file: IO[bytes]) -> Iterator[None]:
    """Lead the process's standard error, which the interpreter prints to, into a file."""
    sys.stderr.flush()
    kept = os.dup(_STDERR)
    try:
        os.dup2(file.fileno(), _STDERR)
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)
