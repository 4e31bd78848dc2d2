"""Modules that are imported when they are named, so that ``import pmt`` stays quick."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, names: Mapping[str, str] | tuple[str, ...]) -> Callable[[str], Any]:
    """Return a module's ``__getattr__`` (PEP 562).

    Parameters
    ----------
    package : str
        The module's name.
    names : tuple of str or mapping
        Its submodules; or by name where each is: ``"module"``, or ``"module:attribute"``.
    """
    places = names if isinstance(names, Mapping) else {n: f"{package}.{n}" for n in names}

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, attribute = places[name].partition(":")
        found = importlib.import_module(module)
        return getattr(found, attribute) if attribute else found

    return find
