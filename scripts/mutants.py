"""Changes one operator, number or word of a source file at a time, and runs the tests of that file.

A mutant that no test notices is a rule that no test asserts, or a change without effect.
`scripts/mutants.py [PART...]` takes the files whose path holds a part; by default all of `FILES`.
They are changed in copies, in build/mutants.
"""

import ast
import io
import os
import re
import shutil
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pmt

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "mutants"
SECONDS = 300  # of a test that a mutant never ends
# A source file and its tests: files of pytest, or a source file of pmt_tests.
FILES = {
    "python/pmt/_util/atomic_file.py": ["tests/util/test_atomic_file.py"],
    "python/pmt/_util/folder_lock.py": ["tests/util/test_folder_lock.py"],
    "python/pmt/train/run/folder.py": [
        "tests/train/test_run_damage.py",
        "tests/train/test_killed_runs.py",
    ],
    "python/pmt/firmware/export/folder.py": [
        "tests/firmware/test_export_folder.py",
        "tests/firmware/test_export_lock.py",
    ],
    "cpp/core/zo/update.cpp": ["test_update.cpp"],
    "cpp/core/card/state_slots.cpp": ["test_state_slots.cpp"],
    "cpp/core/learn/folds.cpp": ["test_folds.cpp"],
    "cpp/core/learn/paired_losses.cpp": ["test_paired_losses.cpp"],
    "cpp/core/learn/schedule.cpp": ["test_schedule.cpp"],
    "cpp/core/learn/state_choice.cpp": ["test_state_choice.cpp"],
}
SWAPS = {
    "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "+": "-", "-": "+",
    "*": "+", "/": "*", "//": "*", "%": "*", "<<": ">>", ">>": "<<",
    "&&": "||", "||": "&&", "&": "|", "|": "&", "!": "",
    "++": "--", "--": "++", "+=": "-=", "-=": "+=",
    "and": "or", "or": "and", "not": "", "in": "not in", "is": "is not",
    "True": "False", "False": "True", "true": "false", "false": "true", "break": "continue",
}  # fmt: skip
CPP_TOKEN = re.compile(
    r"//[^\n]*|#[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[A-Za-z_]\w*|0x[0-9A-Fa-f]+|\d[\w.]*"
    r"|->|::|\+\+|--|&&|\|\||[<>=!+*/&|-]=|<<|>>|\S"
)
Change = tuple[int, int, str]  # from a character to another one, and what stands there instead


def python_tokens(text: str) -> Iterator[tuple[int, str]]:
    """Yield places and texts of the tokens that compute something, not those of types."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    idle = []
    for node in ast.walk(ast.parse(text)):
        types = [getattr(node, name, None) for name in ("annotation", "returns")]
        skipped = [node] if isinstance(node, (ast.Import, ast.ImportFrom)) else types
        idle += [
            ((one.lineno, one.col_offset), (one.end_lineno, one.end_col_offset))
            for one in skipped
            if one is not None
        ]
    plain = (tokenize.OP, tokenize.NAME, tokenize.NUMBER)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in plain and not any(a <= token.start < b for a, b in idle):
            yield starts[token.start[0] - 1] + token.start[1], token.string


def changes(path: Path, text: str) -> Iterator[Change]:
    """Yield every change of a file: an operator or a word for another, a number for the next."""
    if path.suffix == ".py":
        tokens = list(python_tokens(text))
    else:
        tokens = [(found.start(), found[0]) for found in CPP_TOKEN.finditer(text)]
    for at, token in tokens:
        if token in SWAPS:
            yield at, at + len(token), SWAPS[token]
        elif token.isdecimal():
            yield at, at + len(token), str(int(token) + 1)


class PythonTests:
    """The tests of a Python file, on a copy of the installed package."""

    def __init__(self, source: Path, tests: list[str]) -> None:
        installed = Path(pmt.__file__).parent
        shutil.copytree(installed, BUILD / "pmt", dirs_exist_ok=True)
        shutil.rmtree(BUILD / "pmt" / "__pycache__", ignore_errors=True)
        self.file = BUILD / source.relative_to("python")
        self._command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            *tests,
        ]

    def passed(self) -> bool | None:
        """Return whether all pass."""
        paths = {"PYTHONPATH": str(BUILD), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
        return _ends_well(self._command, paths)


class CppTests:
    """The tests of a file of the core, in a copy of the C++ tree."""

    def __init__(self, source: Path, tests: list[str]) -> None:
        tree, built = BUILD / "tree", BUILD / "built"
        for name in ("cpp", "cmake", "firmware_export"):
            shutil.copytree(ROOT / name, tree / name, dirs_exist_ok=True)
        for name in ("CMakeLists.txt", "pyproject.toml"):
            shutil.copy2(ROOT / name, tree / name)
        self.file = tree / source
        options = ["-DPMT_PYTHON=OFF", "-DPMT_TESTS=ON", "-DCMAKE_BUILD_TYPE=Debug"]
        self._build = ["cmake", "--build", str(built), "--target", "pmt_tests"]
        configure = ["cmake", "-S", str(tree), "-B", str(built), "-G", "Ninja", *options]
        subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
        program = built / "cpp" / "tests" / "pmt_tests"
        self._test = [str(program), *(f"--source-file=*/{name}" for name in tests)]

    def passed(self) -> bool | None:
        """Return whether all pass; None where the file does not compile."""
        return _ends_well(self._test) if _ends_well(self._build, seconds=3600) else None


def _ends_well(
    command: list[str], more: dict[str, str] | None = None, seconds: int = SECONDS
) -> bool:
    environment = {**os.environ, **(more or {})}
    output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        ended = subprocess.run(command, cwd=ROOT, env=environment, timeout=seconds, **output)
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == 0


def survivors(source: Path, tests: list[str]) -> tuple[int, list[str]]:
    """Return how many mutants a file has, and those that pass its tests."""
    count, left = 0, []
    run = PythonTests(source, tests) if source.suffix == ".py" else CppTests(source, tests)
    text = run.file.read_text()
    assert run.passed(), f"{tests} fail without a change"
    for begin, end, new in changes(source, text):
        run.file.write_text(text[:begin] + new + text[end:])
        passed = run.passed()
        count += passed is not None
        if passed:
            number = text.count("\n", 0, begin) + 1
            line = text.splitlines()[number - 1].strip()
            left.append(f"{source}:{number}: {text[begin:end]} -> {new or 'nothing'}: {line}")
            print(left[-1], flush=True)
    run.file.write_text(text)
    return count, left


def main() -> None:
    """Print the survivors, and how many of how many were found."""
    parts = sys.argv[1:]
    for name, tests in FILES.items():
        if not parts or any(part in name for part in parts):
            count, left = survivors(Path(name), tests)
            print(f"{name}: {count - len(left)} of {count} mutants found", flush=True)


if __name__ == "__main__":
    main()
