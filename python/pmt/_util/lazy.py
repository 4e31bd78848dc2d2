"""Names that are imported when they are used, so that ``import pmt`` stays quick."""

import importlib
import os
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from threading import RLock
from types import FrameType, MappingProxyType
from typing import Any

# One thread imports at a time. Python has a lock for each module, and takes a module's before its
# package's: threads that come to a package by several of its modules wait for one another, which
# one of them is told by an error.
_importing = RLock()


def _renew() -> None:
    """Give a child process a lock that no thread of its parent holds."""
    global _importing
    _importing = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def lazy_names(
    package: str, elsewhere: Mapping[str, Collection[str]] = MappingProxyType({})
) -> Callable[[str], Any]:
    """Return a package's ``__getattr__``: for submodules, and names of the modules `elsewhere`."""
    places = {name: module for module, names in elsewhere.items() for name in names}

    def found(name: str) -> Any:
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

    def find(name: str) -> Any:
        with nullcontext() if _is_in_import() else _importing:
            return found(name)

    return find


def _is_in_import() -> bool:
    """Whether this thread is in an import already, whose lock the holder of ours may wait for."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        code = frame.f_code
        if code.co_name == "_find_and_load" and code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
