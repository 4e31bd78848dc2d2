"""Names that are imported when they are used, so that ``import pmt`` stays quick."""

import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any


def lazy_names(
    package: str, elsewhere: Mapping[str, Collection[str]] = MappingProxyType({})
) -> Callable[[str], Any]:
    """Return a package's ``__getattr__``: for submodules, and names of the modules `elsewhere`."""
    places = {name: module for module, names in elsewhere.items() for name in names}

    def find(name: str) -> Any:
        if name in places:
            value = getattr(importlib.import_module(places[name]), name)
            setattr(sys.modules[package], name, value)
            return value
        module = f"{package}.{name}"
        try:
            if "." not in name:  # getattr() takes any text
                return importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
