"""Files that are either wholly there or not there at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["write_bytes", "write_text"]


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a file aside, flush it to disk, and rename it into place.

    Parameters
    ----------
    path : str or pathlib.Path
        Destination; replaced if it exists. A killed process leaves the old file.
    data : bytes
        Content.

    Raises
    ------
    OSError
        If the folder is missing or the disk is full; the old file is untouched and no partial
        file is left.
    """
    path = Path(path)
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with aside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException as error:  # Ctrl-C leaves nothing either
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise OSError(
            error.errno,
            f"could not write {len(data)} bytes ({error.strerror}); the file that was there is "
            "unchanged; free some space or choose another folder",
            str(path),
        ) from error


def write_text(path: str | Path, text: str) -> None:
    """As :func:`write_bytes`, for UTF-8 text."""
    write_bytes(path, text.encode())
