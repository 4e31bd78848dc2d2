"""Modules that are imported when they are named, so that ``import pmt`` stays quick."""

import importlib.util
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any


def lazy_names(
    package: str, elsewhere: Mapping[str, str] = MappingProxyType({})
) -> Callable[[str], Any]:
    """Return a module's ``__getattr__``: for submodules, and names of the modules `elsewhere`."""

    def find(name: str) -> Any:
        if name in elsewhere:
            return getattr(importlib.import_module(elsewhere[name]), name)
        if importlib.util.find_spec(f"{package}.{name}") is not None:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
