"""The names in the Python reference: those that a module declares public."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType

import pmt

__all__ = ["public_names"]


def declared_names(module: ModuleType) -> list[str]:
    """Return the names in ``__all__``, or those that the module itself defines."""
    own = [n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__]
    return getattr(module, "__all__", [name for name in own if not name.startswith("_")])


def public_names(module_name: str) -> dict[str, list[str]]:
    """Return the names of a module by kind, without those that `pmt` itself has too."""
    module = importlib.import_module(module_name)
    kinds: dict[str, list[str]] = {"Functions": [], "Classes": [], "Data": []}
    # Names that a module loads when they are asked for need an extra; the site is built without.
    for name in (name for name in declared_names(module) if name in vars(module)):
        value = getattr(module, name)
        if name in pmt.__all__ and getattr(pmt, name) is value:
            continue
        is_class, is_function = inspect.isclass(value), inspect.isroutine(value)
        kinds["Classes" if is_class else "Functions" if is_function else "Data"].append(name)
    return {kind: names for kind, names in kinds.items() if names}
