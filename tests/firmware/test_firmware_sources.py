"""Every file of the firmware is part of a program that some target builds."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from firmware_tools import TARGET, random_dataset
from networks import residual_network

import pmt
from pmt._util.native_files import core_folder, firmware_folder
from pmt.firmware.export import export, export_learner, targets
from pmt.firmware.export.layout import build_files, source_files, values_of
from pmt.firmware.export.target import find_target

OPTIONS = pmt.preset("default", batch=3, queries=4, preparation="align")
PROJECTS: tuple[dict[str, Any], ...] = (
    *({"target": name} for name in targets()),
    {"target": TARGET, "candidates": ["B1", "head"]},
    {"target": "stm32f746g-disco", "format": "platformio"},
    {"target": "generic", "format": "zephyr"},
    {"target": "generic", "format": "arduino"},
)


def patterns(makefile: str) -> list[str]:
    """Wildcards of the sources that a Makefile compiles."""
    (found,) = re.findall(r"^SOURCES := \$\(wildcard ((?:.*\\\n)*.*)\)$", makefile, re.MULTILINE)
    board = re.search(r"^BOARD := (.*)$", makefile, re.MULTILINE)
    return found.replace("\\\n", " ").replace("$(BOARD)", board[1] if board else "").split()


def with_headers(roots: Iterable[str], files: dict[str, bytes]) -> set[str]:
    """These files of a project, and those that they include, directly or not."""
    seen: set[str] = set()
    left = list(roots)
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        included = re.findall(rb'^ *#include "(.*)"', files[name], re.MULTILINE)
        left += [header.decode() for header in included if header.decode() in files]
    return seen


def compiled(files: dict[str, bytes], makefile: str) -> set[str]:
    matched = [
        name
        for name in files
        if any(PurePosixPath(name).match(pattern) for pattern in patterns(makefile))
    ]
    return with_headers(matched, files)


def tree(folder: Path, name: str) -> dict[str, bytes]:
    return {
        f"{name}/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in folder.rglob("*")
        if path.suffix in (".cpp", ".hpp")
    }


def noting(method: Callable[..., Any], paths: set[Path]) -> Callable[..., Any]:
    """Return the method of Path; it adds each path that it is called on to ``paths``."""

    def noted(path: Path, *arguments: Any, **more: Any) -> Any:
        paths.add(path)
        return method(path, *arguments, **more)

    return noted


def test_every_source_is_compiled_or_included_in_some_program():
    firmware = firmware_folder()
    used: set[str] = set()
    for name in targets():
        target = find_target(name)
        for selects in (False, True):
            files = source_files(target)
            files |= build_files(target, defaultdict(str, values_of(target)), selects=selects)
            makefile = files["Makefile"].decode()
            used |= compiled(files, makefile)
            # A library is linked with the application and with a port by another rule.
            ports = re.findall(r"^PORT_SOURCE \?= (.*)$", makefile, re.MULTILINE)
            used |= with_headers(["app/main.cpp", *ports], files)
    counter = source_files(find_target(TARGET)) | tree(firmware / "instructions", "instructions")
    used |= compiled(counter, (firmware / "instructions" / "Makefile").read_text())
    kept = tree(core_folder(), "core")
    for folder in ("common", "drivers", "instructions"):
        kept |= tree(firmware / folder, folder)
    kept |= tree(firmware / "boards", "board")
    assert len(kept) > 140
    assert sorted(set(kept) - used) == []


def test_every_other_file_is_read_for_some_project(tmp_path, monkeypatch):
    read: set[Path] = set()
    for name in ("read_bytes", "read_text"):
        monkeypatch.setattr(Path, name, noting(getattr(Path, name), read))
    model = residual_network()
    for i, project in enumerate(PROJECTS):
        data = random_dataset(model, 9)
        held_out = random_dataset(model, 3) if "candidates" in project else None
        given = {"dataset": data, "held_out": held_out, "options": OPTIONS, **project}
        export(model, out=tmp_path / str(i), **given)
    export_learner(model, target=TARGET, out=tmp_path / "learner")
    zephyr = {"target": "generic", "format": "zephyr", "states": "flash"}
    export_learner(model, out=tmp_path / "zephyr", **zephyr)
    firmware = firmware_folder()
    kept = {
        path
        for path in firmware.rglob("*")
        if path.is_file() and "instructions" not in path.parts and path != firmware / "README.md"
    }
    assert len(kept) > 80
    assert sorted(kept - read) == []
