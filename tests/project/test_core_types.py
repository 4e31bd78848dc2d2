"""The types of the C++ module that mypy reads, against the compiled module."""

from __future__ import annotations

import ast
from importlib.resources import files

from pmt import _core


def test_the_enums_have_the_members_of_the_compiled_module():
    stub = ast.parse(files("pmt").joinpath("_core.pyi").read_text(encoding="utf-8"))
    written = {
        node.name: {
            line.targets[0].id: line.value.value
            for line in node.body
            if isinstance(line, ast.Assign)
        }
        for node in stub.body
        if isinstance(node, ast.ClassDef) and "IntEnum" in map(ast.unparse, node.bases)
    }
    compiled = {
        name: {member.name: member.value for member in kind}
        for name, kind in vars(_core).items()
        if isinstance(kind, type) and hasattr(kind, "__members__")
    }
    assert "Estimator" in compiled
    assert written == compiled
