"""A target: what a board's TOML file says of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmt._util.parsing import parse_toml
from pmt.firmware.export.target_fields import check_value, check_word
from pmt.firmware.export.wiring import Wiring, read_wiring

__all__ = ["Region", "Target", "read_target"]

_REGION = {"origin": int, "bytes": int}
_WIRING = {"supply": str, "crystal_hz": int}
_OPTIONAL = {"board": str, "chip": str, "drivers": list, "flags": list, **_WIRING}
_REQUIRED = {"description": str, "clock_hz": int, "stack_bytes": int, "run": str}
_TABLES = {"flash": dict, "ram": dict, "emulator": dict, "flashing": dict}
_EMULATOR = {"machine": str, "instructions_per_second": int}

_ADDRESSES = 2**32

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
    run : str
        Command that builds and runs, inside the exported folder.
    chip : str
        The processor's part number; empty where nothing takes it.
    machine : str
        QEMU's name of the board; empty for a real one.
    emulated_per_second : int
        Instructions that QEMU executes in a second, roughly; 0 where that is not known.
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
    chip: str = ""
    machine: str = ""
    emulated_per_second: int = 0
    openocd: str = ""
    wiring: Wiring | None = None
    like: str = ""

    @property
    def linked(self) -> bool:
        """Whether the export links a program; otherwise it makes a library."""
        return "cortex_m" in self.drivers

    @property
    def kernels(self) -> str:
        """The core's kernels for the processor."""
        return "arm_dsp" if self.has_dsp else "portable"

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
        if board and board not in _names(boards):
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
    name = path.parent.name if path.name == "target.toml" else path.stem
    check_word("the target's name, that of its file or folder,", name)
    _check(values, {**_REQUIRED, "flash": dict, "ram": dict}, {**_OPTIONAL, **_TABLES}, "")
    regions = {}
    for memory in ("flash", "ram"):
        _check(values[memory], _REGION, {}, f"{memory}.")
        regions[memory] = Region(**values[memory])
        if regions[memory].origin + regions[memory].bytes > _ADDRESSES:
            raise ValueError(
                f"{memory}.origin = {regions[memory].origin} and {memory}.bytes = "
                f"{regions[memory].bytes} must end within 32 bits of address"
            )
    emulator, flashing = values.get("emulator", {}), values.get("flashing", {})
    _check(emulator, {}, _EMULATOR, "emulator.")
    _check(flashing, {}, {"openocd": str}, "flashing.")
    return Target(
        name=name,
        folder=folder,
        drivers=tuple(values.get("drivers", ())),
        flags=tuple(values.get("flags", ())),
        chip=values.get("chip", ""),
        machine=emulator.get("machine", ""),
        emulated_per_second=emulator.get("instructions_per_second", 0),
        openocd=flashing.get("openocd", ""),
        wiring=read_wiring(values),
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
            shown = key if key.isidentifier() else repr(key)
            raise ValueError(f"{where}{shown} is unknown; known are {', '.join(sorted(known))}")
        if not isinstance(value, known[key]) or isinstance(value, bool):
            raise ValueError(f"{where}{key} = {value!r} must be of type {known[key].__name__}")
        if key not in _WIRING:  # read_wiring knows the chip's own rule
            check_value(f"{where}{key}", value)
    for key in required:
        if key not in values:
            raise ValueError(f"{where}{key} is missing")
