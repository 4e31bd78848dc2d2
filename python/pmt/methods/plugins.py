"""Modules that register methods: installed packages by their entry points, others by name."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path

__all__ = ["GROUP", "VARIABLE", "load_plugins"]

GROUP = "pmt.methods"
VARIABLE = "PMT_PLUGINS"

_LOADED: set[str] = set()


def load_plugins(names: Iterable[str] = ()) -> None:
    """Import the modules that register methods, each once.

    They are those of the entry points in the group ``pmt.methods``, those that the environment
    variable ``PMT_PLUGINS`` names, separated by commas, and those given here, which are added to
    the variable, so that the worker processes of a sweep import them too.

    Parameters
    ----------
    names : iterable of str
        Importable modules, or paths of ``.py`` files.

    Raises
    ------
    ImportError
        If a module that is named cannot be imported. An entry point that fails is left out with a
        warning.
    """
    for name in names:
        _add_to_environment(name)
    for point in entry_points(group=GROUP):
        key = f"{GROUP}: {point.name} = {point.value}"
        if key in _LOADED:
            continue
        _LOADED.add(key)
        try:
            point.load()
        except Exception as error:  # a package of others must not stop every command
            warnings.warn(f"entry point {key!r} is left out: {error}", RuntimeWarning, stacklevel=2)
    for name in _named():
        if name not in _LOADED:
            _import(name)
            _LOADED.add(name)


def _named() -> list[str]:
    return [name for name in os.environ.get(VARIABLE, "").split(",") if name]


def _add_to_environment(name: str) -> None:
    full = str(Path(name).absolute()) if name.endswith(".py") else name
    if full not in _named():
        os.environ[VARIABLE] = ",".join([*_named(), full])


def _import(name: str) -> None:
    try:
        if name.endswith(".py"):
            _import_file(Path(name))
        else:
            importlib.import_module(name)
    except (ImportError, OSError) as error:
        raise ImportError(
            f"plugin={name!r}: {error}; give an importable module or the path of a .py file"
        ) from error


def _import_file(path: Path) -> None:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
