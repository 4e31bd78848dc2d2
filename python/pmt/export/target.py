"""A target: what a board's TOML file says of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmt.export.wiring import Wiring, read_wiring
from pmt.parsing import parse_toml

__all__ = ["Region", "Target", "read_target"]

_REGION = {"origin": int, "bytes": int}
_WIRING = {"supply": str, "crystal_hz": int}
_OPTIONAL = {"board": str, "drivers": list, "flags": list, "macs_per_second": int, **_WIRING}
_REQUIRED = {"description": str, "clock_hz": int, "stack_bytes": int, "run": str}
_TABLES = {"flash": dict, "ram": dict, "emulator": dict, "flashing": dict}

# Armv7E-M and Armv8-M with the DSP extension; core/kernels/dsp.hpp asks the compiler the same.
_DSP = {f"-mcpu=cortex-{core}" for core in ("m4", "m7", "m33")}


@dataclass(frozen=True)
class Region:
    """Memory: its first address and its size in bytes."""

    origin: int
    bytes: int


@dataclass(frozen=True)
class Target:
    """A board.

    Attributes
    ----------
    name : str
        What ``--target`` is given.
    folder : pathlib.Path
        Holds the board's sources.
    description : str
        One line for people.
    drivers : tuple of str
        Folders of ``firmware_export/drivers`` that it is built with.
    flags : tuple of str
        The compiler's options for the processor; none for the host's.
    flash, ram : Region
        Memory of the firmware; budgets and linker regions.
    clock_hz : int
        Clock of the core.
    stack_bytes : int
        Reserved for the stack by default.
    macs_per_second : int
        Rough speed, to say how long a run takes.
    run : str
        Command that builds and runs, inside the exported folder.
    machine : str
        QEMU's name of the board; empty for a real one.
    openocd : str
        OpenOCD's script of the board; empty where it has none.
    wiring : Wiring or None
        What the chip must be told of the board; None where no driver asks.
    like : str
        The board whose sizes limit this one, see :meth:`limited_to`.
    """

    name: str
    folder: Path
    description: str
    flash: Region
    ram: Region
    clock_hz: int
    stack_bytes: int
    run: str
    drivers: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    macs_per_second: int = 10_000_000
    machine: str = ""
    openocd: str = ""
    wiring: Wiring | None = None
    like: str = ""

    @property
    def linked(self) -> bool:
        """Whether the export links a program; otherwise it makes a library."""
        return "cortex_m" in self.drivers

    @property
    def has_dsp(self) -> bool:
        """Whether the flags choose a processor for which the core has kernels of its own."""
        return "-mfloat-abi=hard" in self.flags and any(flag in _DSP for flag in self.flags)

    def limited_to(self, other: Target) -> Target:
        """Return this target with another's sizes of flash and RAM.

        Raises
        ------
        ValueError
            If this board has less memory than the other.
        """
        for name, mine, theirs in (
            ("flash", self.flash.bytes, other.flash.bytes),
            ("RAM", self.ram.bytes, other.ram.bytes),
        ):
            if theirs > mine:
                raise ValueError(
                    f"as={other.name!r} has {theirs} bytes of {name}, {self.name} only {mine}"
                )
        return dataclasses.replace(
            self,
            flash=Region(self.flash.origin, other.flash.bytes),
            ram=Region(self.ram.origin, other.ram.bytes),
            stack_bytes=other.stack_bytes,
            like=other.name,
        )


def read_target(path: Path, boards: Path) -> Target:
    """Read a target's file.

    Parameters
    ----------
    path : pathlib.Path
        ``target.toml`` in a board's folder, or a file of the user's. ``board = "NAME"`` in it takes
        the sources of a known board, and what the file does not say itself, but for its wiring;
        without it they lie beside the file.
    boards : pathlib.Path
        Folder of the known boards.

    Raises
    ------
    ValueError
        If it is no TOML, or an entry is unknown, missing, of another type or out of range.
    """
    values = parse_toml(path.read_bytes(), path)
    try:
        board = values.get("board", "")
        if board and not (boards / str(board) / "target.toml").is_file():
            raise ValueError(f"board = {board!r} is none of {', '.join(_names(boards))}")
        if board:
            known = boards / str(board) / "target.toml"
            base = parse_toml(known.read_bytes(), known)
            values = {**{k: v for k, v in base.items() if k not in _WIRING}, **values}
        return _target(path, boards / str(board) if board else path.parent, values)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _names(boards: Path) -> list[str]:
    return sorted(file.parent.name for file in boards.glob("*/target.toml"))


def _target(path: Path, folder: Path, values: Mapping[str, Any]) -> Target:
    _check(values, {**_REQUIRED, "flash": dict, "ram": dict}, {**_OPTIONAL, **_TABLES}, "")
    for name in ("drivers", "flags"):
        if not all(isinstance(item, str) for item in values.get(name, [])):
            raise ValueError(f"{name} = {values[name]!r} must be a list of strings")
    regions = {}
    for name in ("flash", "ram"):
        _check(values[name], _REGION, {}, f"{name}.")
        regions[name] = Region(**values[name])
        if regions[name].bytes < 1024 or regions[name].bytes % 1024:
            raise ValueError(
                f"{name}.bytes = {regions[name].bytes} must be a multiple of 1024 above 0"
            )
    _check(values.get("emulator", {}), {}, {"machine": str}, "emulator.")
    _check(values.get("flashing", {}), {}, {"openocd": str}, "flashing.")
    for name in ("clock_hz", "stack_bytes", "macs_per_second"):
        if values.get(name, 1) < 1:
            raise ValueError(f"{name} = {values[name]} must be above 0")
    return Target(
        name=path.parent.name if path.name == "target.toml" else path.stem,
        folder=folder,
        drivers=tuple(values.get("drivers", ())),
        flags=tuple(values.get("flags", ())),
        machine=values.get("emulator", {}).get("machine", ""),
        openocd=values.get("flashing", {}).get("openocd", ""),
        wiring=read_wiring(values),
        macs_per_second=values.get("macs_per_second", 10_000_000),
        flash=regions["flash"],
        ram=regions["ram"],
        **{name: values[name] for name in _REQUIRED},
    )


def _check(
    values: Mapping[str, Any],
    required: Mapping[str, type],
    optional: Mapping[str, type],
    where: str,
) -> None:
    known = {**required, **optional}
    for key, value in values.items():
        if key not in known:
            raise ValueError(f"{where}{key} is unknown; known are {', '.join(sorted(known))}")
        if not isinstance(value, known[key]) or isinstance(value, bool):
            raise ValueError(f"{where}{key} = {value!r} must be of type {known[key].__name__}")
    for key in required:
        if key not in values:
            raise ValueError(f"{where}{key} is missing")
