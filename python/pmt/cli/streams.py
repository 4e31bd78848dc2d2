"""The standard streams of a command, which ends with its own exit code whatever they are."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TextIO

from pmt._util.printable import printable

__all__ = ["complain", "prepare_streams", "put"]

_STREAMS = {"stdin": "r", "stdout": "w", "stderr": "w"}
_NAMES = {"<stdout>": "standard output", "<stderr>": "standard error"}


def prepare_streams() -> tuple[str, ...]:
    """Open closed streams as the null device, and let no character be one that cannot be written.

    A file would otherwise get the number of a closed stream, and what is meant for a terminal would
    be written into it.

    Returns
    -------
    tuple of str
        Which of ``stdin``, ``stdout``, ``stderr`` were closed.
    """
    closed = tuple(name for name in _STREAMS if getattr(sys, name) is None)
    for name in closed:
        number = os.open(os.devnull, os.O_RDWR)  # the lowest that is free: the stream's own
        os.set_inheritable(number, True)
        setattr(sys, name, os.fdopen(number, _STREAMS[name], encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    return closed


def put(text: str, stream: TextIO) -> None:
    """Write text at once.

    Raises
    ------
    BrokenPipeError
        If the reader went away.
    OSError
        If the stream takes nothing more; the error names it.
    """
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        _discard(stream)
        name = _NAMES.get(stream.name, stream.name)
        raise type(error)(error.errno, error.strerror, name) from None


def complain(message: str) -> None:
    """Print one line on standard error; that nobody can read it changes no exit code."""
    with suppress(OSError):
        put(printable(f"pmt: {message}") + "\n", sys.stderr)


def _discard(stream: TextIO) -> None:
    """Let what is left in the stream's buffer go nowhere, as Python writes it once more at exit."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
