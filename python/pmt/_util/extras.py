"""Optional packages: imported where they are used, or an error that says how to install them."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["import_extra", "missing_extra"]


def import_extra(module: str, need: str, extra: str) -> Any:
    """Import a module of an optional package, or raise :func:`missing_extra`."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing_extra(need, extra) from error


def missing_extra(need: str, extra: str) -> ModuleNotFoundError:
    """Make the error for a missing package: "plots need matplotlib", and the extra it is in."""
    return ModuleNotFoundError(f'{need}: pip install "poor-mans-training[{extra}]"')
