"""Rules of the source tree that no linter knows: sizes, and which way dependencies point."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = (
    "cpp",
    "python",
    "firmware_export",
    "scripts",
    "notebooks",
    "tests",
    "benchmarks",
    "docs",
)
SUFFIXES = {".py", ".pyi", ".cpp", ".hpp", ".S", ".in", ".sh", ".cmake", ".txt", ".md"}
SOURCES = sorted(
    path.relative_to(ROOT)
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if path.suffix in SUFFIXES and path.is_file() and "__pycache__" not in path.parts
)
# What a C++ folder may include with quotes, by the first part of the path. Arrows point one way.
MAY_INCLUDE = {
    "cpp/core": {"core"},
    "cpp/align": {"core", "align"},
    "cpp/host": {"core", "align", "host"},
    "firmware_export": {"core", "common", "drivers", "instructions", "model"},
}
# What runs on a device runs where there is no C++ library: only these two are headers alone.
DEVICE_FOLDERS = ("cpp/core", "cpp/align")
DEVICE_MAY_INCLUDE = {"cstddef", "cstdint"}
RUNTIME_DEPENDENCIES = {"numpy", "pmt"}


def text(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def includes(path: Path) -> list[tuple[str, str]]:
    return re.findall(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', text(path), re.MULTILINE)


def cpp_files(folder: str) -> list[Path]:
    return [p for p in SOURCES if p.is_relative_to(folder) and p.suffix in {".cpp", ".hpp"}]


def module_level_imports(path: Path) -> set[str]:
    """First parts of the names that a module imports when it is itself imported."""
    found = set()
    for node in ast.parse(text(path)).body:
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(str(node.module).partition(".")[0])
    return found


def test_the_tree_is_found():
    assert Path("cpp/core/train/trainer.cpp") in SOURCES
    assert Path("python/pmt/train/trainer.py") in SOURCES


def test_no_source_file_has_400_lines():
    sizes = {str(path): len(text(path).splitlines()) for path in SOURCES}
    assert {path: lines for path, lines in sizes.items() if lines >= 400} == {}


def test_nothing_is_left_to_do():
    marks = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
    assert [str(path) for path in SOURCES if marks.search(text(path))] == []


def test_lines_end_cleanly():
    untidy = [str(p) for p in SOURCES if re.search(r"[ \t\r]$", text(p), re.MULTILINE)]
    assert untidy == []
    assert [str(p) for p in SOURCES if text(p) and not text(p).endswith("\n")] == []


@pytest.mark.parametrize("folder", MAY_INCLUDE)
def test_includes_point_one_way(folder):
    files = cpp_files(folder)
    assert files
    wrong = [
        f"{path}: {name}"
        for path in files
        for bracket, name in includes(path)
        if bracket == '"' and name.partition("/")[0] not in MAY_INCLUDE[folder]
    ]
    assert wrong == []


@pytest.mark.parametrize("folder", DEVICE_FOLDERS)
def test_what_runs_on_a_device_includes_no_library(folder):
    wrong = [
        f"{path}: {name}"
        for path in cpp_files(folder)
        for bracket, name in includes(path)
        if bracket == "<" and name not in DEVICE_MAY_INCLUDE
    ]
    assert wrong == []


def test_headers_are_guarded():
    headers = [path for path in SOURCES if path.suffix == ".hpp"]
    assert [str(path) for path in headers if "#pragma once" not in text(path)] == []


def test_package_imports_numpy_alone():
    """Other packages are imported where they are used, with a hint what to install."""
    wrong = {}
    for path in SOURCES:
        if path.is_relative_to("python") and path.suffix == ".py":
            imported = module_level_imports(path)
            foreign = imported - RUNTIME_DEPENDENCIES - set(sys.stdlib_module_names)
            if foreign:
                wrong[str(path)] = foreign
    assert wrong == {}
