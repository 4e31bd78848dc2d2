"""Symbolic links on the way to a place that is written."""

from __future__ import annotations

import errno
from pathlib import Path

__all__ = ["check_links"]


def check_links(path: Path, what: str) -> None:
    """Raise FileExistsError where a path, or a folder above it, is a link to itself."""
    for place in (path, *path.parents):
        try:
            place.stat()
        except OSError as error:
            if error.errno == errno.ELOOP and place.is_symlink():
                raise FileExistsError(f"{what}: {place} is a link to itself; remove it") from None
