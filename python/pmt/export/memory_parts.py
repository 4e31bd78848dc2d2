"""What an arena is made of, and where its activations are largest."""

from __future__ import annotations

from pmt import _core
from pmt.costs.peak import peak_moment
from pmt.costs.zeroth_order_memory import zeroth_order_memory
from pmt.export.task import Task

__all__ = ["CODE_BYTES", "arena_parts", "peak_op"]

# Of code and constants, about: the linker knows.
CODE_BYTES = 88 * 1024


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
    if memory.optimiser:
        parts["optimiser"] = memory.optimiser
    return {**parts, "buffers, lists": arena - sum(parts.values())}


def peak_op(task: Task) -> str:
    """Return the name of the op at which most activations are alive."""
    device = _core.DeviceMemory(
        task.model.core, task.options, list(task.layers), task.batch, list(task.settings)
    )
    ops = task.model.core.ops()
    return str(ops[peak_moment(device, task.layers).op]["name"])
