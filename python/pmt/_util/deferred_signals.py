"""Signals that wait until a short piece of work is whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["deferred_signals"]

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_SIGNALS = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Let handlers of Ctrl-C, SIGTERM and SIGHUP that are Python functions wait for the end.

    A handler that raises between writing a record and counting it would leave a state that is
    neither before nor after it. Outside of the main thread, which alone runs handlers, nothing
    changes.
    """
    came: list[tuple[int, FrameType | None]] = []
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        found = {number: signal.getsignal(number) for number in _SIGNALS}
        handlers = {number: handler for number, handler in found.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, lambda *arguments: came.append(arguments))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in came:
            handlers[signal.Signals(number)](number, frame)
