"""SIGTERM and SIGHUP, of schedulers and closed terminals, end a command as Ctrl-C does."""

from __future__ import annotations

import os
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

__all__ = ["termination_interrupts"]

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
