"""Rules of the source tree that no linter knows; the arrows are in test_architecture.py."""

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("cpp", "python", "firmware_export", "scripts", "notebooks", "tests", "lab", "docs")
SUFFIXES = {".py", ".pyi", ".cpp", ".hpp", ".S", ".in", ".sh", ".cmake", ".txt", ".md"}
SOURCES = sorted(
    path.relative_to(ROOT)
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if path.suffix in SUFFIXES and path.is_file() and "__pycache__" not in path.parts
)
RUNTIME_DEPENDENCIES = {"numpy", "filelock", "pmt"}


def text(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


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
    assert Path("python/pmt/train/zo_trainer.py") in SOURCES


def test_nothing_is_left_to_do():
    marks = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
    assert [str(path) for path in SOURCES if marks.search(text(path))] == []


def test_lines_end_cleanly():
    untidy = [str(p) for p in SOURCES if re.search(r"[ \t\r]$", text(p), re.MULTILINE)]
    assert untidy == []
    assert [str(p) for p in SOURCES if text(p) and not text(p).endswith("\n")] == []


def docstrings(path: Path) -> list[str]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(text(path))) if isinstance(node, kinds)]
    return [found for node in nodes if (found := ast.get_docstring(node))]


def test_first_lines_of_docstrings_have_nouns_and_verbs():
    """Not "Return what ...": the noun is known to who wrote it."""
    found = [
        f"{path}: {line}"
        for path in SOURCES
        if path.suffix == ".py" and "tests" not in path.parts
        for line in (doc.splitlines()[0] for doc in docstrings(path))
        if re.search(r"\bwhat\b|^Of ", line, re.IGNORECASE)
    ]
    assert found == []


def test_words_that_read_as_translated_are_not_used():
    words = re.compile(r"\b(like" r"wise|so ma" r"ny|one's o" r"wn|of on" r"e's)\b", re.IGNORECASE)
    found = [
        f"{path}:{number}: {line.strip()}"
        for path in SOURCES
        if not path.is_relative_to("lab/pages") and not path.is_relative_to("docs/lab")
        for number, line in enumerate(text(path).splitlines(), 1)
        if words.search(line)
    ]
    assert found == []


def test_headers_are_guarded():
    headers = [path for path in SOURCES if path.suffix == ".hpp"]
    assert [str(path) for path in headers if "#pragma once" not in text(path)] == []


def test_package_imports_its_dependencies_alone():
    """Other packages are imported where they are used, with a hint what to install."""
    wrong = {}
    for path in SOURCES:
        if path.is_relative_to("python") and path.suffix == ".py":
            imported = module_level_imports(path)
            foreign = imported - RUNTIME_DEPENDENCIES - set(sys.stdlib_module_names)
            if foreign:
                wrong[str(path)] = foreign
    assert wrong == {}
