"""How a board is wired, as far as its chip must be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["Wiring", "read_wiring"]

_MHZ = 1_000_000


class _Chip(NamedTuple):
    """Supplies and crystals, in MHz, that a driver can set up."""

    supplies: tuple[str, ...]
    least: int
    most: int
    multiple: int


# By the driver of the chip's clocks.
_CHIPS = {
    "stm32f7": _Chip(("ldo",), 4, 26, 1),
    "stm32h7": _Chip(("ldo", "smps", "smps_1v8_ldo", "smps_2v5_ldo"), 4, 50, 2),
}


@dataclass(frozen=True)
class Wiring:
    """Facts of a board that its chip must be told.

    Attributes
    ----------
    supply : str
        What the core runs from: ``"ldo"``, ``"smps"``, ``"smps_1v8_ldo"`` or ``"smps_2v5_ldo"``.
    crystal_hz : int
        0 where there is none: the chip's own oscillator does.
    """

    supply: str
    crystal_hz: int

    def values(self) -> dict[str, object]:
        """Return what templates take."""
        return {"SUPPLY": self.supply, "CRYSTAL_HZ": self.crystal_hz}


def read_wiring(values: Mapping[str, Any]) -> Wiring | None:
    """Return what a target's file says; None where none of its drivers asks.

    Raises
    ------
    ValueError
        If an entry is missing, not of this chip, or there though nothing asks for it.
    """
    name = next((name for name in values.get("drivers", ()) if name in _CHIPS), None)
    if name is None:
        for key in ("supply", "crystal_hz"):
            if key in values:
                raise ValueError(f"{key} is for the drivers {', '.join(_CHIPS)} alone: remove it")
        return None
    return Wiring(_supply(values, name, _CHIPS[name]), _crystal_hz(values, name, _CHIPS[name]))


def _supply(values: Mapping[str, Any], name: str, chip: _Chip) -> str:
    known = " or ".join(f'"{supply}"' for supply in chip.supplies)
    if "supply" not in values:
        raise ValueError(
            f"supply is missing: add supply = {known}, as the {name}'s core is supplied on this "
            "board; with another one it does not run"
        )
    if values["supply"] not in chip.supplies:
        raise ValueError(f"supply = {values['supply']!r} must be {known} on an {name}")
    return str(values["supply"])


def _crystal_hz(values: Mapping[str, Any], name: str, chip: _Chip) -> int:
    rule = f"{chip.least}_000_000 to {chip.most}_000_000, a multiple of {chip.multiple}_000_000"
    if "crystal_hz" not in values:
        raise ValueError(
            f"crystal_hz is missing: add the frequency of this board's crystal ({rule}), or 0 "
            "where it has none"
        )
    hz = int(values["crystal_hz"])
    inside = chip.least * _MHZ <= hz <= chip.most * _MHZ and hz % (chip.multiple * _MHZ) == 0
    if hz != 0 and not inside:
        raise ValueError(f"crystal_hz = {hz} must be {rule}, on an {name}, or 0: none")
    return hz
