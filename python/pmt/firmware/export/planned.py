"""What an export reserves of a target's memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pmt import _core
from pmt.firmware.export.memory_parts import fixed_memory
from pmt.firmware.export.target import Target
from pmt.model import Model
from pmt.train.clean_statistics import without_statistics
from pmt.train.costs.arena import arena_bytes, portable_arena_excess

__all__ = ["PlannedSizes", "planned_arena", "planned_sizes"]


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
    """Return the bytes of a target's arena, with the kernels that its processor has.

    Parameters
    ----------
    target : Target
        The board.
    model, options, layers, batch, settings
        Those of :func:`pmt.train.costs.arena.arena_bytes`.
    """
    training = (model, options, layers, batch, settings)
    return arena_bytes(*training) + (0 if target.has_dsp else portable_arena_excess(*training))


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
        Its arena and its model are those that :func:`pmt.firmware.export.export` writes.
    """
    fixed = fixed_memory(target)
    return PlannedSizes(
        arena=planned_arena(target, model.core, options, layers, batch),
        stack=fixed.stack,
        variables=fixed.variables,
        model=len(without_statistics(model).image()),
        code=fixed.code,
    )
