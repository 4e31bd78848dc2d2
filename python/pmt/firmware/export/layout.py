"""What an exported folder holds: sources, build files, and where they lie."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pmt.firmware.export import sources
from pmt.firmware.export.target import Target, check_word

__all__ = [
    "build_files",
    "fill_in",
    "link_script",
    "source_files",
    "values_of",
    "with_kept_application",
]


_MAIN = "app/main.cpp"
_SELECTION = "model/selection.hpp"


def with_kept_application(out: Path, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Give a project the application of the folder that it replaces.

    Parameters
    ----------
    out : Path
        Folder of an earlier export.
    files : mapping of str to bytes
        The new project: name -> content.

    Returns
    -------
    dict of str to bytes
        The project with what ``app/`` holds. A ``main.cpp`` that nobody changed gives way where one
        export selects a block and the other does not.

    Raises
    ------
    ValueError
        If a changed ``main.cpp`` does not go with the new project.
    """
    if _MAIN not in files:
        return dict(files)
    kept = {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in (out / "app").rglob("*")
        if path.is_file()
    }
    main = kept.get(_MAIN)
    if main is not None and (_SELECTION.encode() in main) != (_SELECTION in files):
        if main not in _as_exported():
            raise ValueError(
                f"out={str(out)!r} keeps a changed {_MAIN}, which is for an export "
                f"{'without' if _SELECTION in files else 'with'} --select (select=...); move it "
                "away, or choose another folder"
            )
        kept[_MAIN] = files[_MAIN]
    others = {name: content for name, content in files.items() if not name.startswith("app/")}
    return {**others, **kept}


def _as_exported() -> tuple[bytes, ...]:
    template = sources.firmware_folder() / "template"
    return (template / "main.cpp").read_bytes(), (template / "select.cpp").read_bytes()


# Name in the project -> template.
_EVERY_PROJECT = {
    "app/main.cpp": "main.cpp",
    "model/image.S": "image.S",
    "model/config.hpp": "config.hpp.in",
}
# Where the chip must be told how the board is wired.
_WIRED = {"model/wiring.hpp": "wiring.hpp.in"}
# Where the board chooses a block first.
_SELECTING = {"app/main.cpp": "select.cpp", "model/selection.hpp": "selection.hpp.in"}
_FIRMWARE = {
    **_EVERY_PROJECT,
    "Makefile": "Makefile.in",
    "CMakeLists.txt": "CMakeLists.txt.in",
    "CMakePresets.json": "CMakePresets.json.in",
    "toolchain.cmake": "toolchain.cmake.in",
    "README.md": "README.md.in",
}
_LIBRARY = {
    **_EVERY_PROJECT,
    "Makefile": "library/Makefile.in",
    "CMakeLists.txt": "library/CMakeLists.txt.in",
    "README.md": "library/README.md.in",
}
# `memory.cpp` stands in for the C library and `semihosting` for a card: a library needs neither.
_NOT_IN_A_LIBRARY = ("common/memory.cpp", "common/semihosting.cpp", "common/semihosting.hpp")


def source_files(target: Target) -> dict[str, bytes]:
    """Return the C++ sources of a target's project: name in the project -> content.

    Raises
    ------
    ValueError
        If a driver is unknown.
    """
    firmware = sources.firmware_folder()
    files = {**_sources(sources.core_folder(), "core"), **_sources(firmware / "common", "common")}
    drivers = firmware / "drivers"
    for name in target.drivers:
        if not (drivers / name).is_dir():
            known = ", ".join(sorted(p.name for p in drivers.iterdir() if p.is_dir()))
            raise ValueError(f"{target.name}: drivers has {name!r}, which is none of {known}")
        files.update(_sources(drivers / name, f"drivers/{name}"))
    if target.drivers:
        files.update({f"drivers/{p.name}": p.read_bytes() for p in drivers.glob("*.hpp")})
    own = _sources(target.folder, f"board/{target.name}")
    for name in own:
        for part in name.split("/"):
            check_word(f"{target.folder}: the name of a source,", part)
    files.update(own)
    if not target.linked:
        for name in _NOT_IN_A_LIBRARY:
            files.pop(name, None)
    return files


def build_files(
    target: Target, values: Mapping[str, object], *, selects: bool = False
) -> dict[str, bytes]:
    """Return the application, the files that build it, and the README, filled in."""
    firmware = sources.firmware_folder()
    template = firmware / "template"
    templates = _FIRMWARE if target.linked else _LIBRARY
    if target.wiring is not None:
        templates = {**templates, **_WIRED}
    if selects:
        templates = {**templates, **_SELECTING}
    origins = {name: template / path for name, path in templates.items()}
    if target.linked:
        own = target.folder / "link.ld.in"
        common = firmware / "drivers" / "cortex_m" / "link.ld.in"
        origins[f"board/{target.name}/link.ld"] = own if own.is_file() else common
    return {
        name: fill_in(path.read_bytes(), values) if path.suffix == ".in" else path.read_bytes()
        for name, path in origins.items()
    }


def values_of(target: Target) -> dict[str, object]:
    """Return what templates take from a target."""
    wiring = {} if target.wiring is None else target.wiring.values()
    return {
        **wiring,
        "TARGET": target.name,
        "DESCRIPTION": target.description,
        "RUN": target.run,
        "MACHINE": target.machine,
        "OPENOCD_SCRIPTS": target.openocd,
        "TARGET_FLAGS": " ".join(target.flags),
        "FLASH_ORIGIN": f"0x{target.flash.origin:08X}",
        "RAM_ORIGIN": f"0x{target.ram.origin:08X}",
        "CLOCK_HZ": target.clock_hz,
    }


def values_of_sizes(
    *, model: int, arena: int, stack: int, ram: int, flash: int, timeout: int, table: str = ""
) -> dict[str, object]:
    """Return what templates take of a training, in bytes and seconds."""
    return {
        "MODEL_BYTES": model,
        "ARENA_BYTES": arena,
        "STACK_BYTES": stack,
        "RAM_BYTES": ram,
        "FLASH_BYTES": flash,
        "TIMEOUT": timeout,
        "MEMORY": table,
    }


def link_script(target: Target) -> bytes:
    """Return the linker script of a program that has all of a target's memory."""
    template = sources.firmware_folder() / "drivers" / "cortex_m" / "link.ld.in"
    sizes = {
        "FLASH_BYTES": target.flash.bytes,
        "RAM_BYTES": target.ram.bytes,
        "STACK_BYTES": 4 * target.stack_bytes,
    }
    return fill_in(template.read_bytes(), {**values_of(target), **sizes})


def fill_in(template: bytes, values: Mapping[str, object]) -> bytes:
    """Replace every ``@NAME@`` of a template."""
    return re.sub(r"@([A-Z_]+)@", lambda m: str(values[m[1]]), template.decode()).encode()


def _sources(folder: Path, name: str) -> dict[str, bytes]:
    """C++ files below a folder; what builds them on the host stays where it is."""
    return {
        f"{name}/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".cpp", ".hpp") and path.is_file()
    }
