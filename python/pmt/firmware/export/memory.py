"""Memory of a board that a firmware takes, and whether it fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pmt import _core
from pmt.firmware.export.report import ExportReport
from pmt.firmware.export.target import Target
from pmt.firmware.export.task import Task
from pmt.model import Model
from pmt.train.costs.memory import arena_bytes, peak_moment, portable_arena_excess
from pmt.train.prepare import without_statistics

__all__ = [
    "PlannedSizes",
    "arena_parts",
    "check_budgets",
    "fixed_memory",
    "peak_op",
    "planned_arena",
    "planned_sizes",
]


class FixedMemory(NamedTuple):
    """Memory of a firmware whatever it trains, in bytes.

    Variables and code are those of the boards that come with pmt, compiled as their Makefiles do;
    tests hold what is linked to them. Other processors and flags come close. None where another
    project links.

    Attributes
    ----------
    stack : int
        Reserved.
    variables : int
        At most; what else is in RAM is the arena.
    code : int
        Code and constants, at most; what else is in flash is the model.
    """

    stack: int
    variables: int
    code: int


# Code and constants take this at least, whatever the flags: with -Os they have 67 KB.
_LEAST_CODE = 64 * 1024

_VARIABLES, _CODE = 1856, 103 * 1024
# A candidate's trainer is on the stack; the chosen block's is a variable.
_SELECTION = FixedMemory(stack=2048, variables=1024, code=5 * 1024)


def fixed_memory(board: Target, selects: bool = False) -> FixedMemory:
    """Return what a board's firmware takes at most beside arena and model.

    A board that chooses a block (``selects``) takes more.
    """
    if not board.linked:
        return FixedMemory(board.stack_bytes, 0, 0)
    extra = _SELECTION if selects else FixedMemory(0, 0, 0)
    return FixedMemory(
        board.stack_bytes + extra.stack, _VARIABLES + extra.variables, _CODE + extra.code
    )


def arena_parts(task: Task, arena: int) -> dict[str, int]:
    """Return the parts of an arena, which add up to it.

    Parameters
    ----------
    task : Task
        The training.
    arena : int
        Its size in bytes.

    Returns
    -------
    dict of str to int
        Name -> bytes.
    """
    taken = task.device().parts()
    parts = {
        "trained weights": taken["weights"] + taken["biases"],
        "activations": taken["activations"],
        "gradient": taken["gradient"],
        "seeds, losses": taken["tables"],
    }
    if taken["optimizer"]:
        parts["optimizer"] = taken["optimizer"]
    return {**parts, "buffers, lists": arena - sum(parts.values())}


def peak_op(task: Task) -> str:
    """Return the name of the op at which most activations are alive."""
    ops = task.model.core.ops()
    return str(ops[peak_moment(task.device(), task.layers).op]["name"])


@dataclass(frozen=True)
class PlannedSizes:
    """Bytes of a firmware before it is built.

    Attributes
    ----------
    arena, stack, variables : int
        RAM; variables at most.
    model, code : int
        Flash; code at most.
    """

    arena: int
    stack: int
    variables: int
    model: int
    code: int

    @property
    def ram(self) -> int:
        """All RAM, at most."""
        return self.arena + self.stack + self.variables

    @property
    def flash(self) -> int:
        """All flash, at most."""
        return self.model + self.code


def planned_arena(
    target: Target,
    model: _core.Model,
    options: _core.Options,
    layers: Sequence[int],
    batch: int,
    settings: Sequence[_core.LayerSettings] = (),
) -> int:
    """Return the bytes of a target's arena, with the kernels that its processor has."""
    training = (model, options, layers, batch, settings)
    return arena_bytes(*training) + (0 if target.has_dsp else portable_arena_excess(*training))


def planned_sizes(
    target: Target,
    model: Model,
    options: _core.Options,
    layers: Sequence[int],
    batch: int,
) -> PlannedSizes:
    """Plan a training: arena and model are those that an export writes.

    ``options`` are those of :func:`device_options`, ``layers`` op indices in ascending order.
    """
    fixed = fixed_memory(target)
    return PlannedSizes(
        arena=planned_arena(target, model.core, options, layers, batch),
        stack=fixed.stack,
        variables=fixed.variables,
        model=len(without_statistics(model).image()),
        code=fixed.code,
    )


def check_budgets(report: ExportReport, board: Target) -> None:
    """Refuse what cannot be linked.

    Raises
    ------
    ValueError
        If a budget or the stack is outside its range, or what the firmware takes is over a budget.
        The least of code counts, since the compiler's flags decide; the report's verdict says where
        the usual ones may not do.
    """
    _check_ranges(report, board)
    if report.ram_used > report.ram_bytes:
        raise ValueError(
            f"ram={report.ram_bytes} is too small: training needs {report.ram_used} bytes (arena "
            f"{report.arena_bytes}, stack {report.stack_bytes}, variables "
            f"{report.variable_bytes} at most), {report.ram_used - report.ram_bytes} too many; "
            "take a smaller batch, fewer queries or fewer layers"
        )
    code = _LEAST_CODE if board.linked else 0
    over = report.model_bytes + code - report.flash_bytes
    if over > 0:
        raise ValueError(
            f"flash={report.flash_bytes} is too small: the firmware needs at least "
            f"{report.model_bytes + code} bytes (model {report.model_bytes}, code {code}), {over} "
            "too many; take a smaller model"
        )


def _check_ranges(report: ExportReport, board: Target) -> None:
    for name, size, most in (
        ("ram", report.ram_bytes, board.ram.bytes),
        ("flash", report.flash_bytes, board.flash.bytes),
    ):
        if size > most:
            name_of_limit = board.like or board.name
            raise ValueError(f"{name}={size} is more than {name_of_limit} has: {most} bytes")
        if size % 1024:
            raise ValueError(
                f"{name}={size} must be a multiple of 1024 bytes: the MPU guards its end"
            )
    if report.stack_bytes % 8 or report.stack_bytes < 1024:
        raise ValueError(f"stack={report.stack_bytes} must be a multiple of 8, at least 1024 bytes")
