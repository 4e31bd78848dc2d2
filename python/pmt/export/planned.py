"""What an export reserves of a target's memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pmt import _core
from pmt.clean_statistics import without_statistics
from pmt.costs.arena import arena_bytes, portable_arena_excess
from pmt.export.memory_parts import CODE_BYTES
from pmt.export.target import Target
from pmt.model import Model

__all__ = ["VARIABLE_BYTES", "PlannedSizes", "planned_sizes"]

# Of drivers, session and log: the same for every model and training, 16 bytes less in QEMU.
VARIABLE_BYTES = 1712


@dataclass(frozen=True)
class PlannedSizes:
    """Bytes of a firmware before it is built.

    Attributes
    ----------
    arena, stack, variables : int
        RAM.
    model, code : int
        Flash; the code is about that, the linker knows.
    """

    arena: int
    stack: int
    variables: int
    model: int
    code: int

    @property
    def ram(self) -> int:
        """All RAM."""
        return self.arena + self.stack + self.variables

    @property
    def flash(self) -> int:
        """All flash, about."""
        return self.model + self.code


def planned_sizes(
    target: Target,
    model: Model,
    options: _core.Options,
    layers: Sequence[int],
    batch: int,
) -> PlannedSizes:
    """Plan a training on a target.

    Parameters
    ----------
    target : Target
        The board.
    model : Model
        The network.
    options : _core.Options
        As they will be on the target.
    layers : sequence of int
        Op indices, ascending.
    batch : int
        Largest number of samples in a step.

    Returns
    -------
    PlannedSizes
        Its arena and its model are those that :func:`pmt.export.export` writes.
    """
    training = (model.core, options, layers, batch)
    return PlannedSizes(
        arena=arena_bytes(*training) + (0 if target.has_dsp else portable_arena_excess(*training)),
        stack=target.stack_bytes,
        variables=VARIABLE_BYTES,
        model=len(without_statistics(model).image()),
        code=CODE_BYTES,
    )
