"""Type hints resolve: tools that read them, as pydantic and documentation do, get no NameError."""

import contextlib
import importlib
import inspect
import pkgutil
import subprocess
import sys
import typing
from types import ModuleType

import pytest

import pmt
from pmt.errors import MissingExtraError

# The loop and its observers name one another, and no user calls them.
_LOOP = {"Run", "Trainer"}


def modules() -> list[ModuleType]:
    found = [pmt]
    for info in pkgutil.walk_packages(pmt.__path__, "pmt."):
        if not info.name.endswith("__main__"):
            with contextlib.suppress(MissingExtraError):  # pmt.sklearn without scikit-learn
                found.append(importlib.import_module(info.name))
    return found


def annotated(module: ModuleType) -> dict[str, object]:
    """Return the classes, functions and methods of a module by their full names."""
    found = {}
    for name, value in vars(module).items():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        found[f"{module.__name__}.{name}"] = value
        for part, member in vars(value).items() if inspect.isclass(value) else ():
            function = getattr(member, "fget", None) or getattr(member, "func", None)
            function = function or getattr(member, "__func__", member)
            found[f"{module.__name__}.{name}.{part}"] = function
    return {k: v for k, v in found.items() if inspect.isclass(v) or inspect.isfunction(v)}


def problem(name: str, value: object) -> str:
    try:
        typing.get_type_hints(value)
    except NameError as error:
        inner = name.startswith("pmt.train.run.") and error.name in _LOOP
        return "" if inner else f"{name}: {error}"
    return ""


def test_every_annotation_resolves():
    everything = {name: value for m in modules() for name, value in annotated(m).items()}
    assert len(everything) > 3000
    assert [told for told in map(problem, everything, everything.values()) if told] == []


def test_the_public_ones_are_among_them():
    everything = {id(v) for m in modules() for v in annotated(m).values()}
    public = [getattr(pmt, name) for name in pmt.__all__]
    own = [v for v in public if inspect.isclass(v) or inspect.isfunction(v)]
    assert len(own) > 25
    assert [v.__qualname__ for v in own if id(v) not in everything] == []


def test_the_hints_of_options_are_theirs():
    hints = typing.get_type_hints(pmt.preset)
    assert "OptionArguments" in str(hints["changes"])
    assert hints["return"] is pmt.TrainingOptions
    assert typing.get_type_hints(pmt.Confusion.of_predictions)["model"] is pmt.Model


@pytest.mark.parametrize("package", ["pandas", "matplotlib", "sklearn", "torch", "pmt.plots"])
def test_hints_import_no_optional_package(package):
    program = (
        "import pmt, sys, typing; typing.get_type_hints(pmt.Confusion.plot); "
        "typing.get_type_hints(pmt.Evaluation.to_frame); "
        f"print({package!r} in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n"
