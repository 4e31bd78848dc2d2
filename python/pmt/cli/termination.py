"""SIGTERM, which schedulers and `timeout` send, ends a command as Ctrl-C does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["termination_interrupts"]


@contextmanager
def termination_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM: training leaves a checkpoint, a sweep ends its workers.

    Where somebody else handles the signal, or outside of the main thread, nothing changes.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
