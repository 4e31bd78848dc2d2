"""What a firmware's memory is made of, and where its activations are largest."""

from __future__ import annotations

from typing import NamedTuple

from pmt import _core
from pmt.firmware.export.target import Target
from pmt.firmware.export.task import Task
from pmt.train.costs.peak import peak_moment
from pmt.train.costs.zeroth_order_memory import zeroth_order_memory

__all__ = ["LEAST_CODE", "FixedMemory", "arena_parts", "fixed_memory", "peak_op"]


class FixedMemory(NamedTuple):
    """What a firmware takes whatever it trains, in bytes.

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
        Of code and constants, at most; what else is in flash is the model.
    """

    stack: int
    variables: int
    code: int


# Of code and constants, whatever the flags: with -Os it is 67 KB.
LEAST_CODE = 64 * 1024

_VARIABLES, _CODE = 1792, 92 * 1024
# A candidate's trainer is on the stack; the chosen block's is a variable.
_SELECTION = FixedMemory(stack=2048, variables=1024, code=5 * 1024)


def fixed_memory(board: Target, selects: bool = False) -> FixedMemory:
    """Return what a board's firmware takes beside arena and model.

    Parameters
    ----------
    board : Target
        The board.
    selects : bool
        Whether it chooses a block.

    Returns
    -------
    FixedMemory
        Bounds.
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
    memory = zeroth_order_memory(
        task.model, task.options, task.layers, batch=task.batch, settings=task.settings
    )
    parts = {
        "trained weights": memory.weights + memory.biases,
        "activations": memory.activations + memory.input,
        "gradient": memory.weight_gradients,
        "seeds, losses": memory.tables,
    }
    if memory.optimizer:
        parts["optimizer"] = memory.optimizer
    return {**parts, "buffers, lists": arena - sum(parts.values())}


def peak_op(task: Task) -> str:
    """Return the name of the op at which most activations are alive."""
    device = _core.DeviceMemory(
        task.model.core, task.options, list(task.layers), task.batch, list(task.settings)
    )
    ops = task.model.core.ops()
    return str(ops[peak_moment(device, task.layers).op]["name"])
