"""Files that are either wholly there or not there at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["remove_leftovers", "write_bytes", "write_text", "writing"]


@contextmanager
def writing(path: str | Path, size: int) -> Iterator[BinaryIO]:
    """Open a file aside; at the end of the block it is flushed to disk and renamed into place.

    Whatever ends the block early, Ctrl-C too, leaves the old file and removes the one aside.

    Parameters
    ----------
    path : str or pathlib.Path
        Destination; replaced if it exists.
    size : int
        Bytes that will be written, for the error.

    Yields
    ------
    binary file
        Open for writing.

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
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except OSError as error:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        ours = error.errno is not None and str(error.filename) in ("None", str(aside))
        if not ours:  # the block's own work failed, not the writing
            raise
        raise OSError(
            error.errno,
            f"could not write {size} bytes ({error.strerror}); the file that was there is "
            "unchanged; free some space or choose another folder",
            str(path),
        ) from error
    except BaseException:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a whole file as :func:`writing` does.

    Parameters
    ----------
    path : str or pathlib.Path
        Destination; replaced if it exists. A killed process leaves the old file.
    data : bytes
        Content.

    Raises
    ------
    OSError
        As :func:`writing`.
    """
    with writing(path, len(data)) as file:
        file.write(data)


def write_text(path: str | Path, text: str) -> None:
    """As :func:`write_bytes`, for UTF-8 text."""
    write_bytes(path, text.encode())


def remove_leftovers(path: str | Path) -> None:
    """Remove what a process that was killed while it wrote ``path`` left aside."""
    path = Path(path)
    for left in path.parent.glob(f".{path.name}.*.part"):
        left.unlink(missing_ok=True)
