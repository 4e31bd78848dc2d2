"""Packages of the extra "data", imported where a corruption needs them."""

from __future__ import annotations

import importlib
from types import ModuleType


def ndimage(corruption: str) -> ModuleType:
    """Import scipy.ndimage, or say how to install it."""
    return _extra("scipy.ndimage", "SciPy", corruption)


def pillow(corruption: str) -> ModuleType:
    """Import Pillow's Image module, or say how to install it."""
    return _extra("PIL.Image", "Pillow", corruption)


def _extra(module: str, package: str, corruption: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f'{corruption} needs {package}: pip install "poor-mans-training[data]"'
        ) from None
