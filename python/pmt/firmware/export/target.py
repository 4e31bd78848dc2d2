"""A target, as a board's TOML file describes it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pmt._util.checks import checked_path
from pmt._util.native_files import firmware_folder
from pmt._util.parsing import parse_toml
from pmt._util.text import did_you_mean
from pmt.errors import FileError, MissingFileError, OptionError

# Armv7E-M and Armv8-M with the DSP extension; core/kernels/dsp.hpp asks the compiler the same.
_DSP = {f"-mcpu=cortex-{core}" for core in ("m4", "m7", "m33")}


@dataclass(frozen=True)
class Region:
    """Memory: its first address and its size in bytes."""

    origin: int
    bytes: int


class Wiring(NamedTuple):
    """Supply and crystal of a board, which its clock driver must know."""

    supply: str  # supply of the core: `"ldo"`, `"smps"`, `"smps_1v8_ldo"` or `"smps_2v5_ldo"`
    crystal_hz: int  # 0 where there is none: the chip's own oscillator does


@dataclass(frozen=True)
class Target:
    """A board."""

    name: str  # value of `--target`
    folder: Path  # holds the board's sources
    description: str  # one line for people
    # Memory of the firmware; budgets and linker regions.
    flash: Region
    ram: Region
    clock_hz: int  # clock of the core
    stack_bytes: int  # reserved for the stack by default
    run: str  # command that builds and runs, inside the exported folder
    drivers: tuple[str, ...] = ()  # folders of `firmware_export/drivers` that it is built with
    flags: tuple[str, ...] = ()  # the compiler's options for the processor; none for the host's
    chip: str = ""  # the processor's part number; empty where nothing takes it
    machine: str = ""  # QEMU's name of the board; empty for a real one
    # Instructions that QEMU executes in a second, roughly; 0 where that is not known.
    emulated_per_second: int = 0
    openocd: str = ""  # OpenOCD's script of the board; empty where it has none
    # Supply and crystal, for the chip's clock driver; None where no driver asks.
    wiring: Wiring | None = None
    # Slower memory beside it, which a learner may keep activations in.
    external: Region | None = None
    like: str = ""  # the board whose sizes limit this one, see `limited_to`

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

    @property
    def state_flash(self) -> Region | None:
        """Flash above the program that pmt can write: two sectors, for two states of a learner."""
        for family, region in _STATE_FLASH.items():
            flash = _MEMORY[family]["flash"][0]
            size = _FLASH_BYTES.get(self.chip[len(family) + 1 : len(family) + 2], 0)
            is_there = region.origin + region.bytes <= flash.origin + size
            is_above = flash.origin <= self.flash.origin < region.origin
            if self.chip.startswith(family) and is_there and is_above:
                return region
        return None

    def limited_to(self, other: Target) -> Target:
        """Return this target with another's sizes of flash and RAM, which must be no larger."""
        for name, mine, theirs in (
            ("flash", self.flash.bytes, other.flash.bytes),
            ("RAM", self.ram.bytes, other.ram.bytes),
        ):
            if theirs > mine:
                raise OptionError(
                    "like", f"={other.name!r} has {theirs} bytes of {name}, {self.name} only {mine}"
                )
        return dataclasses.replace(
            self,
            flash=Region(self.flash.origin, other.flash.bytes),
            ram=Region(self.ram.origin, other.ram.bytes),
            stack_bytes=other.stack_bytes,
            like=other.name,
        )


def targets() -> tuple[str, ...]:
    """Return the names that ``export`` takes as ``target``."""
    return target_names(firmware_folder() / "boards")


def find_target(target: str, like: str | None = None) -> Target:
    """Return a target by its name, or by the path of its TOML file.

    With ``like`` it is limited to the flash and RAM of that one. A ValueError says that there is no
    such target, that its file is wrong, or that it has less memory than ``like``; a
    FileNotFoundError that there is no such file.
    """
    if like is not None:
        return _found(target, "target").limited_to(_found(like, "like"))
    return _found(target, "target")


def _found(target: str, argument: str) -> Target:
    boards = firmware_folder() / "boards"
    if isinstance(target, str) and target in targets():
        return read_target(boards / target / "target.toml", boards)
    path = checked_path(argument, target)
    if path.suffix == ".toml":
        if not path.is_file():
            raise MissingFileError(
                f"{argument}={target!r}: no such file; check the path, or choose one of "
                f"{', '.join(targets())}"
            )
        return read_target(path.resolve(), boards)
    remedy = did_you_mean(str(target), targets())
    if not remedy.endswith("?"):
        remedy += ", or give the path of a TOML file that describes a board"
    raise OptionError(argument, f"={target!r} is unknown{remedy}")


def target_names(boards: Path) -> tuple[str, ...]:
    """Return the names of the boards whose folders are in a folder."""
    return tuple(sorted(file.parent.name for file in boards.glob("*/target.toml")))


def read_target(path: Path, boards: Path) -> Target:
    """Read a target's file: ``target.toml`` in a board's folder, or a file of the user's.

    ``board = "NAME"`` in it takes the sources of a known board, and what the file does not say
    itself, but for its wiring; without it they lie beside the file. A ValueError tells of a file
    that is not TOML, and of an entry that is unknown, missing, of another type or out of range.
    """
    values = parse_toml(path.read_bytes(), path)
    try:
        board = values.get("board", "")
        if board and board not in target_names(boards):
            raise ValueError(f"board = {board!r} is none of {', '.join(target_names(boards))}")
        if board:
            known = boards / str(board) / "target.toml"
            base = parse_toml(known.read_bytes(), known)
            values = {**{k: v for k, v in base.items() if k not in _WIRING}, **values}
        return _target(path, boards / str(board) if board else path.parent, values)
    except ValueError as error:
        raise FileError(str(path), [str(error)]) from error


_REGION = {"origin": int, "bytes": int}
_WIRING = {"supply": str, "crystal_hz": int}
_OPTIONAL = {"board": str, "chip": str, "drivers": list, "flags": list, **_WIRING}
_REQUIRED = {"description": str, "clock_hz": int, "stack_bytes": int, "run": str}
_TABLES = {"flash": dict, "ram": dict, "external": dict, "emulator": dict, "flashing": dict}
_EMULATOR = {"machine": str, "instructions_per_second": int}


def _target(path: Path, folder: Path, values: Mapping[str, Any]) -> Target:
    name = path.parent.name if path.name == "target.toml" else path.stem
    check_word("the target's name, that of its file or folder,", name)
    _check(values, {**_REQUIRED, "flash": dict, "ram": dict}, {**_OPTIONAL, **_TABLES}, "")
    regions = {}
    for memory in ("flash", "ram", *(["external"] if "external" in values else [])):
        _check(values[memory], _REGION, {}, f"{memory}.")
        regions[memory] = Region(**values[memory])
        if regions[memory].origin + regions[memory].bytes > 2**32:
            raise ValueError(
                f"{memory}.origin = {regions[memory].origin} and {memory}.bytes = "
                f"{regions[memory].bytes} must end within 32 bits of address"
            )
    _check_chip(values.get("chip", ""), regions)
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
        wiring=_read_wiring(values),
        flash=regions["flash"],
        ram=regions["ram"],
        external=regions.get("external"),
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
            raise ValueError(f"{where}{shown} is unknown{did_you_mean(key, sorted(known))}")
        if not isinstance(value, known[key]) or isinstance(value, bool):
            raise ValueError(f"{where}{key} = {value!r} must be of type {known[key].__name__}")
        if key not in _WIRING:  # _read_wiring knows the chip's own rule
            _check_value(f"{where}{key}", value)
    for key in required:
        if key not in values:
            raise ValueError(f"{where}{key} is missing")


_KB = 1024
# RM0385, table 2, and RM0455, table 6; what lies side by side is one. Flash is as large as the part
# number says, and an STM32F7 has it at two places.
_MEMORY = {
    "stm32f746": {
        "flash": (Region(0x0800_0000, 1024 * _KB), Region(0x0020_0000, 1024 * _KB)),
        "ram": (Region(0x2000_0000, 320 * _KB),),
    },
    "stm32h7b3": {
        "flash": (Region(0x0800_0000, 2048 * _KB),),
        "ram": (
            Region(0x2400_0000, 1024 * _KB),
            Region(0x2000_0000, 128 * _KB),
            Region(0x3000_0000, 128 * _KB),
            Region(0x3800_0000, 32 * _KB),
        ),
    },
}
_FLASH_BYTES = {"e": 512 * _KB, "g": 1024 * _KB, "i": 2048 * _KB}  # the letter after the package's
# The last two sectors; the exported program asserts that drivers/stm32f7/flash_states.hpp has them.
_STATE_FLASH = {"stm32f746": Region(0x0808_0000, 512 * _KB)}


def _check_chip(chip: str, regions: Mapping[str, Region]) -> None:
    """Raise ValueError where a region leaves the memory of a known chip."""
    family = next((name for name in _MEMORY if chip.startswith(name)), None)
    if family is None:
        return
    most = _FLASH_BYTES.get(chip[len(family) + 1 : len(family) + 2], 1 << 32)
    for name, known in _MEMORY[family].items():
        region = regions[name]
        if name == "flash":
            known = tuple(Region(one.origin, min(one.bytes, most)) for one in known)
        end = region.origin + region.bytes
        if not any(k.origin <= region.origin and end <= k.origin + k.bytes for k in known):
            places = " or ".join(f"{k.origin:#x} to {k.origin + k.bytes:#x}" for k in known)
            raise ValueError(
                f"{name}.origin = {region.origin:#x} and {name}.bytes = {region.bytes:#x} end at "
                f"{end:#x}, and the {name} of {chip} is {places}; correct them, or chip"
            )


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


def _read_wiring(values: Mapping[str, Any]) -> Wiring | None:
    """Return the wiring in a target's file; None where none of its drivers needs it."""
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


_ADDRESSES = 2**32
_UNITS = {"": 1, "K": 1024, "M": 1024 * 1024}


def parse_size(name: str, value: str | int) -> int:
    """Return a size in bytes: a number, or one with the unit ``K`` (1024 bytes) or ``M`` (1024 K).

    A ValueError, which calls it ``name``, says that it is not a size above 0.
    """
    match = re.fullmatch(r"([0-9]+)\s*([KM]?)(?:i?B)?", str(value).strip(), re.IGNORECASE)
    size = int(match[1]) * _UNITS[match[2].upper()] if match else 0
    if size < 1:
        rule = "must be a number of bytes, such as 262144, 256K or 1M"
        raise OptionError(name, f"={value!r} {rule}")
    if size > _ADDRESSES:
        raise OptionError(name, f"={value!r} must be at most 4096M, all that 32 bits address")
    return size


class _Text(NamedTuple):
    """A pattern for the whole of a string, and the rule in words."""

    pattern: str
    rule: str


class _Number(NamedTuple):
    """The smallest and largest value, and the number that it must be a multiple of."""

    low: int
    high: int
    multiple: int = 1


_WORD = _Text(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}",
    "must be up to 64 letters, digits, '.', '_' and '-', and begin with a letter or digit",
)
_SCRIPT = r"[A-Za-z0-9][A-Za-z0-9_-]*(?:[./][A-Za-z0-9][A-Za-z0-9_-]*)*\.cfg"
# Neither a file's name (plug-ins, reports) nor what changes the arithmetic.
_INEXACT = r"(?:fast|unsafe|associative|reciprocal|finite|single)-|no-signed-zeros|fp-"
_FLAGS = (
    r"-m[a-z0-9-]+(?:=[A-Za-z0-9][A-Za-z0-9.+_-]*)?",
    r"-D[A-Za-z_][A-Za-z0-9_]*(?:=[A-Za-z0-9_.+-]*)?",
    r"-O[0-3gs]",
    rf"-f(?!{_INEXACT})[a-z0-9-]+(?:=[0-9]+)?",
    r"-W[a-z0-9+-]+(?:=[0-9]+)?",
)
_TEXTS = {
    # It is shown to people, and written to the README and to JSON.
    "description": _Text(r".{1,200}", "must be a line of 1..200 characters that can be printed"),
    "flags": _Text(
        "|".join(_FLAGS),
        "must be one of a compiler's options -m..., -D..., -O0..-O3, -Og, -Os, -f... and -W..., "
        "without a file's name or characters of the shell, and none that changes the arithmetic",
    ),
    "run": _Text(r"make(?: [a-z][a-z0-9-]*)*", "must be `make` and goals of the exported Makefile"),
    "flashing.openocd": _Text(
        rf"{_SCRIPT}(?: {_SCRIPT})*",
        "must be OpenOCD's names of scripts, such as board/stm32f7discovery.cfg",
    ),
}
_ADDRESS = _Number(0, 2**32 - 1024, 1024)
_SIZE = _Number(1024, 2**32, 1024)
_NUMBERS = {
    "clock_hz": _Number(1_000, 4_000_000_000),
    "stack_bytes": _Number(1024, 2**24, 8),
    "flash.origin": _ADDRESS,
    "flash.bytes": _SIZE,
    "ram.origin": _ADDRESS,
    "ram.bytes": _SIZE,
    "external.origin": _ADDRESS,
    "external.bytes": _SIZE,
}
_ANY_NUMBER = _Number(0, 2**32 - 1)


def _check_value(field: str, value: Any) -> None:
    """Check a value by the rule of its field; a field without its own has a strict one.

    ``field`` is the entry's name with its table: ``"emulator.machine"``.
    """
    if isinstance(value, str):
        check_word(f"{field} =", value, _TEXTS.get(field, _WORD))
    elif isinstance(value, int):
        _check_number(field, value, _NUMBERS.get(field, _ANY_NUMBER))
    elif isinstance(value, list):
        for item in value:
            if not isinstance(item, str):
                raise ValueError(f"{field} = {value!r} must be a list of strings")
            check_word(f"{field} has", item, _TEXTS.get(field, _WORD))


def check_word(what: str, text: str, rule: _Text = _WORD) -> None:
    """Raise ValueError unless a string obeys a rule, by default that of a file's or program's name.

    ``what`` names the string in the message.
    """
    if not re.fullmatch(rule.pattern, text) or not text.isprintable():
        raise ValueError(f"{what} {text!r} {rule.rule}")


def _check_number(field: str, value: int, rule: _Number) -> None:
    if rule.low <= value <= rule.high and value % rule.multiple == 0:
        return
    multiple = f" and a multiple of {rule.multiple}" if rule.multiple > 1 else ""
    raise ValueError(f"{field} = {value} must be {rule.low}..{rule.high}{multiple}")
