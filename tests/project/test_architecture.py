"""The tree: which way dependencies point, as docs/architecture.md shows, and rules of its sources.

Every include and import counts, also those inside functions and those only for type checkers.
"""

import ast
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# C++ packages, and the others that each may include.
CORE = (
    "core/base", "core/kernels", "core/ops", "core/image", "core/input", "core/card", "core/net",
    "core/align",
    "core/zo",
    "core/train", "core/learn", "core/learner",
)  # fmt: skip
CPP = {
    **{package: set(CORE[:i]) for i, package in enumerate(CORE)},
    "host": set(CORE),
    "bindings": {*CORE, "host"},
    "reference": set(CORE),
    "firmware": set(CORE),
    "examples": set(CORE),
}
FIRMWARE_FOLDERS = {"common", "drivers", "board", "instructions"}
# The core runs where there is no C++ library: only these are header-only.
FREESTANDING = {"cstddef", "cstdint"}

# Python packages from the bottom up; a package may import itself and what is below it. `pmt` is the
# package's own __init__, the public names.
PYTHON = (
    "_core", "errors", "_util", "callbacks", "datasets", "corruptions", "net", "formats", "model",
    "protocol", "quantization", "train", "baselines", "methods", "sklearn", "pmt", "profiling",
    "firmware", "sheets", "plots", "cli",
)  # fmt: skip
# Rooms of `train` from the bottom up, too; its other files are the steps, options and trainers
# that the rooms share.
TRAIN = ("costs", "prepare", "run", "choose")


def cpp_package(path: Path) -> str:
    """Return the package of a C++ file, by its path from the root."""
    if path.parts[0] == "firmware_export":
        return "firmware"
    parts = path.parts[1:-1]
    return "/".join(parts[:2]) if parts[0] == "core" else parts[0]


def cpp_files() -> list[Path]:
    found = [*ROOT.glob("cpp/**/*.[ch]pp"), *ROOT.glob("firmware_export/**/*.[ch]pp")]
    skip = {"tests", "firmware_tests", "fuzz"}
    paths = sorted(path.relative_to(ROOT) for path in found)
    return [path for path in paths if path.parts[1] not in skip]


def included_package(name: str, package: str) -> str:
    """Return the package of an included file; a bare name lies in the including one's folder."""
    parts = name.split("/")
    if parts[0] == "core":
        return "/".join(parts[:2])
    if parts[0] in FIRMWARE_FOLDERS:
        return "firmware"
    return parts[0] if parts[0] in CPP else package


def includes(path: Path) -> list[tuple[str, str]]:
    text = (ROOT / path).read_text(encoding="utf-8")
    return re.findall(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', text, re.MULTILINE)


def test_cpp_includes_point_down():
    files = cpp_files()
    assert {cpp_package(path) for path in files} == set(CPP)
    wrong = [
        f"{path}: {name}"
        for path in files
        for bracket, name in includes(path)
        if bracket == '"'
        and included_package(name, cpp_package(path))
        not in {cpp_package(path), *CPP[cpp_package(path)]}
    ]
    assert wrong == [], "\n".join(wrong)


def test_what_runs_on_a_device_includes_no_library():
    wrong = [
        f"{path}: {name}"
        for path in cpp_files()
        if path.parts[1] == "core"
        for bracket, name in includes(path)
        if bracket == "<" and name not in FREESTANDING
    ]
    assert wrong == [], "\n".join(wrong)


def python_package(module: str) -> str:
    return module.split(".")[1] if "." in module else "pmt"


def imported_modules(path: Path) -> set[str]:
    """Return every module of pmt that a file names in an import, wherever it stands."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports of the package are absolute"
            if node.module == "pmt":
                packages = {alias.name for alias in node.names}
                found.update(f"pmt.{name}" if name in PYTHON else "pmt" for name in packages)
            else:
                found.add(str(node.module))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.update(re.findall(r"^pmt(?:\.\w+)+$", node.value))  # imported by its name
    found.discard("pmt.lock")
    return {name for name in found if name == "pmt" or name.startswith("pmt.")}


def test_python_imports_point_down():
    files = sorted(path.relative_to(ROOT) for path in (ROOT / "python" / "pmt").rglob("*.py"))
    packages = {path.parts[2] for path in files if len(path.parts) > 3}
    assert packages == set(PYTHON) - {"_core", "errors", "pmt"}
    assert [str(p) for p in files if len(p.parts) == 3] == [
        "python/pmt/__init__.py", "python/pmt/__main__.py", "python/pmt/backprop.py",
        "python/pmt/errors.py",
    ]  # fmt: skip
    wrong = []
    for path in files:
        if path.name == "__main__.py":
            continue
        names = len(path.parts) == 3 and path.name in ("__init__.py", "backprop.py")
        package = "pmt" if names else path.parts[2]
        allowed = set(PYTHON[: PYTHON.index(package.removesuffix(".py")) + 1])
        if package == "pmt":  # names all, and imports those above it when they are asked for
            allowed = set(PYTHON)
        wrong += [
            f"{path}: {name}"
            for name in sorted(imported_modules(path))
            if python_package(name) not in allowed
        ]
    assert wrong == [], "\n".join(wrong)


def test_rooms_of_train_point_down():
    train = ROOT / "python" / "pmt" / "train"
    assert {path.parent.name for path in train.glob("*/*.py")} == set(TRAIN)
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for at, room in enumerate(TRAIN)
        for path in sorted((train / room).glob("*.py"))
        for name in sorted(imported_modules(path))
        if name.startswith(tuple(f"pmt.train.{above}" for above in TRAIN[at + 1 :]))
    ]
    assert wrong == [], "\n".join(wrong)


PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
# Where a path of the page may begin.
ROOTS = ("", "cpp", "cpp/core", "python/pmt", "firmware_export")
SUFFIXES = (".cpp", ".hpp", ".py", ".pyi", ".md", ".toml", ".txt", ".cmake", ".*")
WRITTEN_BY_A_RUN = ("config.toml",)


def named_paths(text: str) -> list[str]:
    """Return the paths between backticks; a bare name is in the folder of the path before it."""
    found, folder = [], ""
    for name in re.findall(r"`([^`\s]+)`", text):
        if name in WRITTEN_BY_A_RUN or not ("/" in name or name.endswith(SUFFIXES)):
            continue
        if "/" in name:
            folder = name.rpartition("/")[0]
            found.append(name)
        else:
            found.append(f"{folder}/{name}".lstrip("/"))
    return found


def places(path: str) -> list[Path]:
    """Return the files and folders that a path stands for; NAME is any name."""
    pattern = path.rstrip("/").replace("NAME", "*")
    found = [place for root in ROOTS for place in (ROOT / root).glob(pattern)]
    return [place for place in found if place.is_dir() or not path.endswith("/")]


def test_paths_are_read_as_the_page_says():
    text = "`cpp/core` takes no `heap`; `core/zo/loss.*`, `query.cpp`; `boards/NAME/`, `--seed`"
    assert named_paths(text) == ["cpp/core", "core/zo/loss.*", "core/zo/query.cpp", "boards/NAME/"]
    assert places("core/zo/query.cpp") == [ROOT / "cpp" / "core" / "zo" / "query.cpp"]
    assert len(places("core/zo/loss.*")) == 2
    assert places("core/zo/query.cpp/") == places("core/zo/none.cpp") == []


@pytest.mark.parametrize("path", sorted(set(named_paths(PAGE))))
def test_what_the_page_names_is_in_the_tree(path):
    assert places(path), f"docs/architecture.md: there is no {path}"


def test_the_picture_has_every_package():
    picture = PAGE.partition("```\n")[2].partition("```")[0]
    shown = set(re.findall(r"\b\w+(?=/)", picture))
    folders = [ROOT / "cpp" / "core", ROOT / "firmware_export", ROOT / "python" / "pmt"]
    packages = {path.name for folder in folders for path in folder.iterdir() if path.is_dir()}
    assert len(packages) > 20
    assert packages - shown - {"data", "_native", "__pycache__"} == set()


FOLDERS = ("cpp", "python", "firmware_export", "scripts", "notebooks", "tests", "lab", "docs")
PYTHON_SUFFIXES = {".py", ".ipynb"}
SOURCE_SUFFIXES = {
    *PYTHON_SUFFIXES, ".pyi", ".cpp", ".hpp", ".S", ".in", ".sh", ".cmake", ".txt", ".md",
}  # fmt: skip
SOURCES = sorted(
    path.relative_to(ROOT)
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if path.suffix in SOURCE_SUFFIXES and path.is_file() and "__pycache__" not in path.parts
)
RUNTIME_DEPENDENCIES = {"numpy", "filelock", "pmt"}


def text(path: Path) -> str:
    """Return a file's text; of a notebook its code, with the other cells as comments."""
    found = (ROOT / path).read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return found
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(found)["cells"]]
    parts = [one if kind == "code" else re.sub(r"(?m)^(?=.)", "# ", one) for kind, one in cells]
    return "\n".join([*parts, ""])


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
    assert text(Path("notebooks/01_first_steps.ipynb")).startswith("# # First steps\n\n# For")


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
        if path.suffix in PYTHON_SUFFIXES and "tests" not in path.parts
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
