"""A target's file is data: none of its values runs anything, and every number has a range."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from firmware_tools import COMPILER, make, need_firmware_tools, share_objects, small_export, succeed

from pmt._util.native_files import firmware_folder
from pmt.firmware.export import target
from pmt.firmware.export.target import find_target

BOARDS = firmware_folder() / "boards"
BASE = 'board = "qemu-mps2-an500"\n'
HOSTILE = (
    "$(shell touch pwned)", "`touch pwned`", "x; touch pwned", "x && touch pwned", "x | touch y",
    "$(eval $(shell touch pwned))", "x\ntouch pwned", "x\n\ttouch pwned", "x # y", "'; touch pwned",
    '"; touch pwned', "${shell touch pwned}", "../../x", "/etc/passwd", "x,y", "x\\", "\x1b[31mx",
    "-x", "x y", "@TARGET@", "", "\u202ex", "a" * 300, "%n", "~", "!x", "<x", ">pwned", "x*", "[x]",
)  # fmt: skip
FLAGS = (
    "-fplugin=x", "-fplugin=/tmp/x.so", "-Wl,-T,x", "-Wa,x", "-Wp,-MD,x", "-include", "-Ix",
    "-specs=x", "-B.", "-wrapper", "@file", "-ffast-math", "-Ofast", "-ffp-contract=fast",
    "-funsafe-math-opts", "-fassociative-math", "-freciprocal-math", "-fopt-info-all=Makefile",
    "-DX=$(shell x)",
    "-mcpu=cortex-m7 -mthumb", "-o", "-x", "--sysroot=x", "-MF", "-save-temps", "-fno-signed-zeros",
)  # fmt: skip
FINE = (
    "-march=armv8.1-m.main+mve.fp+fp.dp", "-mfix-cortex-m3-ldrd", "-DNDEBUG", "-DBOARD_REV=2",
    "-O3", "-fno-common", "-falign-functions=16", "-Wno-error", "-Wstack-usage=2048", "-Os",
)  # fmt: skip


def fields(kind: type) -> list[str]:
    """Every entry of a target of a type, with its table."""
    tables = {"": {**target._REQUIRED, **target._OPTIONAL}, "emulator.": target._EMULATOR}
    tables |= {"flash.": target._REGION, "ram.": target._REGION, "flashing.": {"openocd": str}}
    return [table + key for table, keys in tables.items() for key in keys if keys[key] is kind]


def written(folder: Path, field: str, value: Any) -> str:
    """A target's file in which one entry is another."""
    table, _, key = field.rpartition(".")
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}"]
    if table in ("flash", "ram"):
        other = {"origin": "bytes = 0x1000", "bytes": "origin = 0x2000_0000"}[key]
        lines.append(other)
    text = BASE + (f"[{table}]\n" if table else "") + "\n".join(lines) + "\n"
    if field == "board":
        text = lines[0] + "\n"
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path)


def test_the_schema_is_found():
    assert {"description", "run", "chip", "flashing.openocd", "emulator.machine"} <= set(
        fields(str)
    )
    assert fields(list) == ["drivers", "flags"]
    assert {"clock_hz", "flash.origin", "ram.bytes"} <= set(fields(int))


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("field", [*fields(str), *fields(list)])
def test_no_string_runs_anything(tmp_path, field, value):
    given = [value] if field in fields(list) else value
    path = written(tmp_path, field, given)
    if field == "description" and value.isprintable() and 0 < len(value) <= 200:
        assert find_target(path).description == value
        return
    if field == "board" and value == "":
        return  # beside the file, which lacks the rest
    with pytest.raises(ValueError, match=rf"mine\.toml: {field.replace('.', '[.]')} ") as error:
        find_target(path)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("value", [value for value in HOSTILE if value.isprintable() and value])
def test_a_description_is_shown_and_no_more(tmp_path, value):
    if len(value) > 200:
        return
    need_firmware_tools("make")
    out = tmp_path / "fw"
    small_export(out, target=written(tmp_path, "description", value))
    harmless = written(tmp_path, "description", "harmless")
    small_export(tmp_path / "other", target=harmless)
    differ = subprocess.run(
        ["diff", "-rq", str(tmp_path / "other"), str(out)], capture_output=True, text=True
    ).stdout
    changed = set(re.findall(r"Files \S+/other/(\S+) and", differ))
    assert changed == {"README.md", "pmt.lock"}


@pytest.mark.parametrize("flag", FLAGS)
def test_flags_that_are_none_of_a_processors(tmp_path, flag):
    with pytest.raises(ValueError, match=r"flags has .* must be one of a compiler's options -m"):
        find_target(written(tmp_path, "flags", ["-mthumb", flag]))


@pytest.mark.parametrize("flag", FINE)
def test_flags_that_a_board_may_need(tmp_path, flag):
    assert find_target(written(tmp_path, "flags", [flag])).flags == (flag,)


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("clock_hz", 999, "1000..4000000000"),
        ("clock_hz", 9 * 10**18, "1000..4000000000"),
        ("stack_bytes", 0, "1024..16777216 and a multiple of 8"),
        ("stack_bytes", 1028, "1024..16777216 and a multiple of 8"),
        ("stack_bytes", 2**40, "1024..16777216 and a multiple of 8"),
        ("flash.origin", -5, "0..4294966272 and a multiple of 1024"),
        ("ram.origin", 2**32, "0..4294966272 and a multiple of 1024"),
        ("ram.origin", 0x20000004, "0..4294966272 and a multiple of 1024"),
        ("flash.bytes", 0, "1024..4294967296 and a multiple of 1024"),
        ("ram.bytes", -1024, "1024..4294967296 and a multiple of 1024"),
        ("emulator.instructions_per_second", -1, "0..4294967295"),
    ],
)
def test_numbers_have_ranges(tmp_path, field, value, rule):
    path = written(tmp_path, field, value)
    with pytest.raises(ValueError, match=re.escape(f"mine.toml: {field} = {value} must be {rule}")):
        find_target(path)


# Where a board's drivers ask for a crystal, its rule is the chip's: tests/firmware/test_targets.py.
@pytest.mark.parametrize("field", [name for name in fields(int) if name != "crystal_hz"])
@pytest.mark.parametrize("value", [-(2**63), -1, 2**63, 9e21, True, "1"])
def test_every_number_has_a_range(tmp_path, field, value):
    with pytest.raises(ValueError, match=rf"mine\.toml: {field.replace('.', '[.]')} = .* must be "):
        find_target(written(tmp_path, field, value))


def test_memory_ends_within_the_addresses(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(BASE + "[ram]\norigin = 0xFFFF_0000\nbytes = 0x2_0000\n")
    rule = "ram.origin = 4294901760 and ram.bytes = 131072 must end within 32 bits of address"
    with pytest.raises(ValueError, match=rule):
        find_target(str(path))


def test_an_unknown_entry_is_shown_without_its_control_characters(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(BASE + '"\\u001b[31mx" = 1\n')
    with pytest.raises(ValueError, match=r"'\\x1b\[31mx' is unknown"):
        find_target(str(path))


@pytest.mark.parametrize(
    "name", ["$(shell touch pwned)", "a b", "a'b", "a#b", "`x`", "a;b", "-x", "a\nb", "@TARGET@"]
)
def test_the_files_own_name_is_a_word(tmp_path, name):
    path = tmp_path / f"{name}.toml"
    path.write_text(BASE)
    with pytest.raises(
        ValueError, match="the target's name, that of its file or folder, "
    ) as error:
        small_export(tmp_path / "fw", target=str(path))
    assert "must be up to 64 letters, digits, '.', '_' and '-'" in str(error.value)
    assert not (tmp_path / "fw").exists()


def test_the_names_of_a_boards_own_sources_are_words(tmp_path):
    board = tmp_path / "mine"
    board.mkdir()
    (board / "target.toml").write_text((BOARDS / "qemu-mps2-an500" / "target.toml").read_text())
    (board / "board.cpp").write_text("")
    small_export(tmp_path / "fw", target=str(board / "target.toml"))
    (board / "$(touch pwned).cpp").write_text("")
    with pytest.raises(ValueError, match=r"the name of a source, '\$\(touch pwned\).cpp' must be"):
        small_export(tmp_path / "fw", target=str(board / "target.toml"))


def test_folders_of_any_name_hold_the_target_and_the_project(tmp_path, firmware_objects):
    """Build files name what is in the folder, and never the folder.

    CMake's own Makefiles cannot be in a folder with a dollar or a hash in its name.
    """
    need_firmware_tools("make", "cmake", COMPILER)
    folder = tmp_path / "a b $(touch pwned) `x` #1 it's"
    folder.mkdir()
    report = small_export(folder / "f w", target=written(folder, "description", "mine"), steps=1)
    share_objects(firmware_objects, report.path)
    assert make(report.path, "build/fw.elf").returncode == 0
    copy = tmp_path / "it's a copy"
    shutil.copytree(report.path, copy, ignore=shutil.ignore_patterns("build"))
    succeed("cmake", "--preset", "firmware", folder=copy)
    succeed("cmake", "--build", "--preset", "firmware", folder=copy)
    command = str(report).splitlines()[-1].removeprefix("next: ").replace(" qemu", " size")
    succeed("sh", "-c", command, folder=tmp_path)
    assert not list(tmp_path.rglob("pwned"))
