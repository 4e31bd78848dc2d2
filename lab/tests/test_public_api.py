"""The lab uses pmt as any researcher would: what it imports is public and in the reference."""

import ast
import importlib
import re
from pathlib import Path

import pytest

import pmt

ROOT = Path(__file__).parents[2]
LAB = ROOT / "lab" / "pmt_lab"
REFERENCE = (ROOT / "docs" / "reference" / "api.md").read_text()
MODULES = {"pmt", *re.findall(r"^ +(pmt\.[a-z_.]+)$", REFERENCE, re.MULTILINE)}
PACKAGES = ("sweep", "report", "plots", "cli")
FILES = [LAB / "files.py", *(path for name in PACKAGES for path in (LAB / name).glob("*.py"))]


def private_imports(path: Path) -> list[str]:
    """Return what a module takes from pmt and the reference does not list."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            found += [n for n in names if n.startswith("pmt.") and n not in MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pmt":
            known = []
            if node.module in MODULES:
                known = importlib.import_module(str(node.module)).__all__
            names = [alias.name for alias in node.names if alias.name not in known]
            found += [f"{node.module}.{name}" for name in names]
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "pmt":
            found += [f"pmt.{name}" for name in [node.attr] if name not in pmt.__all__]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(LAB)))
def test_it_imports_what_the_reference_lists(path):
    assert private_imports(path) == []
