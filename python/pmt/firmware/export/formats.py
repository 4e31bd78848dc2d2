"""The layouts that other build systems want: PlatformIO, Zephyr, Arduino."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

from pmt import _core
from pmt.firmware.export.layout import fill_in
from pmt.firmware.export.sources import firmware_folder
from pmt.firmware.export.target import Target

__all__ = ["FORMATS", "arrange", "check_format", "run_command"]

FORMATS = ("make", "platformio", "zephyr", "arduino")
_OF_A_LIBRARY = ("zephyr", "arduino")  # the system brings the board


def check_format(name: str, target: Target) -> None:
    """Refuse a format that is unknown, or that does not suit the target.

    Raises
    ------
    ValueError
        If so.
    """
    if name not in FORMATS:
        raise ValueError(f"format={name!r} is unknown; choose one of {', '.join(FORMATS)}")
    if name in _OF_A_LIBRARY and target.linked:
        raise ValueError(
            f"format={name!r} brings its own start-up code: take --target generic, not "
            f"{target.name}"
        )
    if name == "platformio" and not target.linked:
        raise ValueError(
            f"format={name!r} links a program: take a board such as stm32f746g-disco, not "
            f"{target.name}"
        )
    if name == "platformio" and not target.chip:
        raise ValueError(
            f'format={name!r} needs the processor\'s part number: add chip = "..." to the file of '
            f"{target.name}"
        )


def run_command(name: str, target: Target, folder: Path | None = None) -> str:
    """Return what builds the project with its build system, and runs it where that is possible.

    Parameters
    ----------
    name : str
        One of ``FORMATS``.
    target : Target
        The board.
    folder : pathlib.Path, optional
        Where the project is, for a command to be typed outside of it.
    """
    here = folder or Path(".")
    where = shlex.quote(str(here))
    if name == "zephyr":
        return f"west build -b BOARD {where}"
    if name == "arduino":
        flags = (firmware_folder() / "template" / name / "platform.local.txt").read_text()
        sketch = shlex.quote(str(here / "examples" / "Train"))
        build = shlex.quote(flags.splitlines()[-1])
        return f"arduino-cli compile -b FQBN --library {where} --build-property {build} {sketch}"
    if name == "platformio":
        goals = "" if target.machine else " -t upload -t monitor"
        return f"pio run -d {where}{goals}" if folder else f"pio run{goals}"
    return target.run.replace("make", f"make -C {where}", 1) if folder else target.run


def arrange(
    files: Mapping[str, bytes], name: str, target: Target, values: Mapping[str, object]
) -> dict[str, bytes]:
    """Return a project's files as a build system wants them.

    Parameters
    ----------
    files : mapping of str to bytes
        The project for ``make``: name -> content.
    name : str
        One of ``FORMATS``.
    target : Target
        The board.
    values : mapping
        What templates take.
    """
    template = firmware_folder() / "template" / name
    values = {**values, "VERSION": _core.__version__}
    if name == "platformio":
        return {**files, **_platformio(template, target, values)}
    if name == "zephyr":
        return {**_without_build_files(files), **_zephyr(template, values)}
    if name == "arduino":
        return _arduino(template, _without_build_files(files), values)
    return dict(files)


def _without_build_files(files: Mapping[str, bytes]) -> dict[str, bytes]:
    left_out = ("Makefile", "CMakeLists.txt", "README.md")
    return {
        name: content
        for name, content in files.items()
        if name not in left_out and not name.startswith("board/")
    }


def _filled(path: Path, values: Mapping[str, object]) -> bytes:
    return fill_in(path.read_bytes(), values)


def _platformio(template: Path, target: Target, values: Mapping[str, object]) -> dict[str, bytes]:
    board = {
        "name": target.description,
        "vendor": "pmt export",
        "url": "https://docs.platformio.org/en/latest/platforms/creating_board.html",
        "build": {
            "cpu": next((f[6:] for f in target.flags if f.startswith("-mcpu=")), ""),
            "f_cpu": f"{target.clock_hz}L",
            "mcu": target.chip,
        },
        "debug": {"openocd_board": Path(target.openocd).stem},
        "upload": {
            "maximum_size": values["FLASH_BYTES"],
            "maximum_ram_size": values["RAM_BYTES"],
            "protocol": "stlink",
            "protocols": ["stlink"],
            "offset_address": values["FLASH_ORIGIN"],
        },
    }
    return {
        "platformio.ini": _filled(template / "platformio.ini.in", values),
        "platformio/flags.py": _filled(template / "flags.py.in", values),
        f"platformio/{target.name}.json": (json.dumps(board, indent=2) + "\n").encode(),
    }


def _zephyr(template: Path, values: Mapping[str, object]) -> dict[str, bytes]:
    return {
        "CMakeLists.txt": _filled(template / "CMakeLists.txt.in", values),
        "prj.conf": _filled(template / "prj.conf.in", values),
        "port/port.cpp": (template / "port.cpp").read_bytes(),
        "zephyr/module.yml": (template / "module.yml").read_bytes(),
        "zephyr/Kconfig": (template / "Kconfig").read_bytes(),
        "zephyr/CMakeLists.txt": _filled(template / "module_CMakeLists.txt.in", values),
        "README.md": _filled(template / "README.md.in", values),
    }


def _arduino(
    template: Path, files: Mapping[str, bytes], values: Mapping[str, object]
) -> dict[str, bytes]:
    """Arduino compiles all of ``src/``, which is its include path as well."""
    sources = {
        f"src/{name}": content
        for name, content in files.items()
        if name.startswith(("core/", "common/", "model/")) and name != "model/image.S"
    }
    image = files["model/model.pmt"]
    del sources["src/model/model.pmt"]
    return {
        **{name: files[name] for name in files if "/" not in name},
        **sources,
        "src/model/image.cpp": _c_array(image),
        "src/port.cpp": (template / "port.cpp").read_bytes(),
        "src/pmt_firmware.h": (template / "pmt_firmware.h").read_bytes(),
        "examples/Train/Train.ino": (template / "Train.ino").read_bytes(),
        "library.properties": _filled(template / "library.properties.in", values),
        "extras/platform.local.txt": (template / "platform.local.txt").read_bytes(),
        "README.md": _filled(template / "README.md.in", values),
    }


def _c_array(image: bytes) -> bytes:
    """Return the model as source: Arduino's builders know no ``.incbin`` of a library's file."""
    lines = [
        ", ".join(str(byte) for byte in image[i : i + 24]) + "," for i in range(0, len(image), 24)
    ]
    head = '// The model, as it is on disk.\n#include "model/config.hpp"\n\n'
    head += "namespace pmt::exported {\n\n"
    array = "alignas(16) const uint8_t model_image[] = {\n" + "\n".join(lines) + "\n};\n"
    return (head + array + "\n}  // namespace pmt::exported\n").encode()
