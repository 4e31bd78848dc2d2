"""A method's memory on a board, counted in three ways, against what the board has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pmt.baselines.backprop.cost import inference_moments
from pmt.firmware.board.linked import LinkedSizes, link_firmware, require_linked
from pmt.firmware.export.memory import PlannedSizes, planned_sizes
from pmt.firmware.export.target import Target
from pmt.model import Model
from pmt.research.profile import Profile
from pmt.train.clean_statistics import without_statistics
from pmt.train.costs.device_memory import device_options

__all__ = ["BoardMemory", "analytic_bytes", "board_memory", "with_linked"]


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
        RAM by :func:`analytic_bytes`.
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


def analytic_bytes(model: Model, profile: Profile) -> int:
    """Return the RAM of a method as the paper counts it ("Peak Memory" of the hardware cost).

    With forward passes alone: the trained parameters and the activations that are alive at once in
    inference. For back-propagation the lower bound of :func:`backward_memory`.
    """
    if profile.device is None:
        return profile.memory.sram
    activations = max(moment.total for moment in inference_moments(model))
    return activations + profile.memory.weights + profile.memory.biases


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
