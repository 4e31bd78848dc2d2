"""Modules that are imported when they are named, so that ``import pmt`` stays quick."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(
    package: str, submodules: tuple[str, ...], elsewhere: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """Return a module's ``__getattr__``: for submodules, and names of the modules `elsewhere`."""
    places = elsewhere or {}

    def find(name: str) -> Any:
        if name in submodules:
            return importlib.import_module(f"{package}.{name}")
        if name in places:
            return getattr(importlib.import_module(places[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
