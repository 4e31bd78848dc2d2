"""Which way dependencies point: docs/architecture.md shows the same packages as a picture.

Every include and import counts, also those inside functions and those only for type checkers.
"""

import ast
import re
from pathlib import Path

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
