"""The files of an exported project: sources, build files, and how each build system wants them."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

from pmt import _core
from pmt._util.checks import checked_word
from pmt._util.native_files import core_folder, firmware_folder
from pmt.firmware.export.target import Target, check_word
from pmt.model.card import IMAGE_CRC

Format = Literal["make", "platformio", "zephyr", "arduino"]
FORMATS: tuple[Format, ...] = get_args(Format)
_OF_A_LIBRARY = ("zephyr", "arduino")  # the system brings the board

# `memory.cpp` stands in for the C library and `semihosting` for a card: a library needs neither.
_NOT_IN_A_LIBRARY = ("common/memory.cpp", "common/semihosting.cpp", "common/semihosting.hpp")


def source_files(target: Target, *, learner: bool = False) -> dict[str, bytes]:
    """Return the C++ sources of a target's project: name in the project -> content."""
    firmware = firmware_folder()
    files = {**_sources(core_folder(), "core"), **_sources(firmware / "common", "common")}
    if learner:
        files.update(_sources(firmware / "learner", "learner"))
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
    target: Target, values: Mapping[str, object], *, selects: bool = False, learner: bool = False
) -> dict[str, bytes]:
    """Return the application, the files that build it, and the README, filled in."""
    parts = ["project", "firmware" if target.linked else "library"]
    # For chips that must be told how the board is wired; for boards that choose a block first, or
    # learn by themselves.
    wanted = {"wired": target.wiring is not None, "select": selects, "learner": learner}
    origins = templates(*parts, *(part for part, is_wanted in wanted.items() if is_wanted))
    if target.linked:
        own = target.folder / "link.ld.in"
        common = firmware_folder() / "drivers" / "cortex_m" / "link.ld.in"
        origins[f"board/{target.name}/link.ld"] = own if own.is_file() else common
    return filled(origins, values)


def templates(*parts: str) -> dict[str, Path]:
    """Return the templates of some parts of a project by name there; a later part's win."""
    folders = [firmware_folder() / "template" / part for part in parts]
    return {
        path.relative_to(folder).as_posix().removesuffix(".in"): path
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file()
    }


def filled(origins: Mapping[str, Path], values: Mapping[str, object]) -> dict[str, bytes]:
    """Return the contents of templates; of those that end in ``.in`` with the values put in."""
    return {
        name: fill_in(path.read_bytes(), values) if path.suffix == ".in" else path.read_bytes()
        for name, path in origins.items()
    }


def image_values(image: bytes) -> dict[str, object]:
    """Return the template values of a model's image: size, checksum, and a symbol of its own."""
    crc = IMAGE_CRC.unpack_from(image)[0]
    return {
        "MODEL_BYTES": len(image),
        "MODEL_CRC": f"0x{crc:08x}",
        "MODEL_SYMBOL": f"pmt_model_{crc:08x}",
    }


def values_of(target: Target) -> dict[str, object]:
    """Return the template values of a target."""
    supply, crystal_hz = target.wiring or ("", 0)
    return {
        "SUPPLY": supply,
        "CRYSTAL_HZ": crystal_hz,
        "TARGET": target.name,
        "DESCRIPTION": target.description,
        "RUN": target.run,
        "MACHINE": target.machine,
        "OPENOCD_SCRIPTS": target.openocd,
        "TARGET_FLAGS": " ".join(target.flags),
        "FLASH_ORIGIN": f"0x{target.flash.origin:08X}",
        "RAM_ORIGIN": f"0x{target.ram.origin:08X}",
        "EXTERNAL_ORIGIN": f"0x{0 if target.external is None else target.external.origin:08X}",
        "EXTERNAL_BYTES": 0,
        "CLOCK_HZ": target.clock_hz,
    }


def training_values(
    model: _core.Model, options: _core.Options, layers: Sequence[int], batch: int = 1
) -> dict[str, object]:
    """Return the template values of a training; of none where there are no layers."""
    streams = _streams(model, options, layers, batch) if layers else []
    return {
        "OPTIONS": _listed(options.pack()),
        "LAYERS": _listed(layers or (0,)),
        "LAYER_COUNT": len(layers),
        **stream_values(streams),
    }


def block_values(
    model: _core.Model, options: _core.Options, blocks: Sequence[Sequence[int]], batch: int
) -> dict[str, object]:
    """Return the template values of the blocks among which a learner chooses."""
    streams = [_streams(model, options, layers, batch) for layers in blocks]
    lists, named = block_lists(blocks, streams)
    rows = [f"{{{layers}, {streams}}}" for layers, streams in named]
    return {
        "OPTIONS": _listed(options.pack()),
        "BLOCK_LISTS": lists,
        "BLOCKS": ", ".join(rows) or "{nullptr, 0, nullptr, 0}",
        "BLOCK_COUNT": len(rows),
    }


def block_lists(
    blocks: Sequence[Sequence[int]], streams: Sequence[Sequence[tuple[int, ...]]]
) -> tuple[str, list[tuple[str, str]]]:
    """Return lists of the layers and streams of blocks, and the name and length of each block's."""
    lists, named = [], []
    for i, (layers, runs) in enumerate(zip(blocks, streams, strict=True)):
        values = stream_values(runs)
        lists += [
            f"constexpr int32_t layers_of_{i}[] = {{{_listed(layers)}}};",
            f"constexpr StreamedOps streams_of_{i}[] = {{{values['STREAMS']}}};",
        ]
        named.append((f"layers_of_{i}, {len(layers)}", f"streams_of_{i}, {len(runs)}"))
    return "\n".join(lists), named


def _streams(
    model: _core.Model, options: _core.Options, layers: Sequence[int], batch: int
) -> Sequence[tuple[int, ...]]:
    return _core.DeviceMemory(model, options, list(layers), batch).segments()


def stream_values(streams: Sequence[tuple[int, ...]]) -> dict[str, object]:
    """Return the template values of streams; C++ has no empty array: the count tells of none."""
    braced = ", ".join(f"{{{_listed(one)}}}" for one in streams or [(0, 0, 1)])
    return {"STREAMS": braced, "STREAM_COUNT": len(streams)}


def _listed(values: Iterable[int]) -> str:
    return ", ".join(map(str, values))


def link_script(target: Target) -> bytes:
    """Return the linker script of a program that has all of a target's memory."""
    template = firmware_folder() / "drivers" / "cortex_m" / "link.ld.in"
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
    """C++ files below a folder, without the files that build them on the host."""
    return {
        f"{name}/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".cpp", ".hpp", ".h") and path.is_file()
    }


def check_format(name: str, target: Target) -> None:
    """Refuse a format that is unknown, or that does not suit the target."""
    checked_word("format", name, FORMATS)
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
    """Return the command that builds the project and, where that is possible, runs it.

    With a ``folder``, where the project is, the command is to be typed outside of it.
    """
    here = folder or Path(".")
    where = shlex.quote(str(here))
    if name == "zephyr":
        return f"west build -b BOARD {where}"
    if name == "arduino":
        flags = templates(name)["extras/platform.local.txt"].read_text()
        sketch = shlex.quote(str(here / "examples" / "Train"))
        build = shlex.quote(flags.splitlines()[-1])
        return f"arduino-cli compile -b FQBN --library {where} --build-property {build} {sketch}"
    if name == "platformio":
        goals = "" if target.machine else " -t upload -t monitor"
        return f"pio run -d {where}{goals}" if folder else f"pio run{goals}"
    return target.run.replace("make", f"make -C {where}", 1) if folder else target.run


def arrange(
    files: Mapping[str, bytes],
    name: str,
    target: Target,
    values: Mapping[str, object],
    *parts: str,
) -> dict[str, bytes]:
    """Return the files of the project for ``make`` as another build system wants them.

    ``parts`` are templates behind those of the system.
    """
    if name == "make":
        return dict(files)
    own = filled(templates(name, *parts), {**values, "VERSION": _core.__version__})
    if name == "platformio":
        return {**files, **own, f"platformio/{target.name}.json": _platformio(target, values)}
    files = _without_build_files(files)
    return {**(_arduino(files) if name == "arduino" else files), **own}


def _without_build_files(files: Mapping[str, bytes]) -> dict[str, bytes]:
    left_out = ("Makefile", "CMakeLists.txt", "README.md")
    return {
        name: content
        for name, content in files.items()
        if name not in left_out and not name.startswith("board/")
    }


def _platformio(target: Target, values: Mapping[str, object]) -> bytes:
    """Return PlatformIO's description of a board."""
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
    return (json.dumps(board, indent=2) + "\n").encode()


def _arduino(files: Mapping[str, bytes]) -> dict[str, bytes]:
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
