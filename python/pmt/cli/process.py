"""The command as a process: its standard streams, and the signals that end it."""

from __future__ import annotations

import io
import os
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TextIO

from pmt._util.printable import printable

__all__ = [
    "complain",
    "prepare_streams",
    "put",
    "termination_interrupts",
]


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


_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def termination_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt on either: training leaves a checkpoint, a sweep ends its workers.

    Where somebody else handles a signal, or ignores it as nohup does, or outside of the main
    thread, nothing changes. A command that was started with Ctrl-C ignored goes on ignoring it:
    Python installs no handler then.
    """
    ours = threading.current_thread() is threading.main_thread()
    taken = [n for n in _SIGNALS if ours and signal.getsignal(n) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    for descriptor in (1, 2):
        _leave_closed_terminal(descriptor)
    raise KeyboardInterrupt


def _leave_closed_terminal(descriptor: int) -> None:
    """Let what is still written to a terminal that is gone go nowhere, instead of failing."""
    with suppress(OSError):
        is_device = stat.S_ISCHR(os.fstat(descriptor).st_mode)
        if is_device and not os.isatty(descriptor):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
