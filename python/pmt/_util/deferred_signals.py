"""Signals that wait until a short piece of work is whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["deferred_signals"]

_Handler = Callable[[int, FrameType | None], Any]
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_SIGNALS = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]


class _Deferrable:
    """A handler that calls another one: at once, or in a deferral at its end.

    A signal may come between any two lines here, and its handler may raise. Whatever is left out
    then, the handlers that stay installed still call those that were there before.
    """

    pending: dict[int, tuple[_Handler, FrameType | None]] | None = None  # None: no deferral

    def __init__(self, handler: _Handler) -> None:
        self.handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if _Deferrable.pending is None:
            self.handler(number, frame)
        else:
            _Deferrable.pending.setdefault(number, (self.handler, frame))


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Let handlers of Ctrl-C, SIGTERM and SIGHUP that are Python functions wait for the end.

    A handler that raises between writing a record and counting it would leave a state that is
    neither before nor after it. Outside of the main thread, which alone runs handlers, nothing
    changes.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or _Deferrable.pending is not None:
        yield
        return
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        if callable(handler) and not isinstance(handler, _Deferrable):
            signal.signal(number, _Deferrable(handler))
    pending: dict[int, tuple[_Handler, FrameType | None]] = {}
    _Deferrable.pending = pending
    try:
        yield
    finally:
        _Deferrable.pending = None
        try:
            _call(pending)
        finally:
            _restore()


def _call(pending: dict[int, tuple[_Handler, FrameType | None]]) -> None:
    """Call every handler, also those after one that raises."""
    if pending:
        number, (handler, frame) = pending.popitem()
        try:
            handler(number, frame)
        finally:
            _call(pending)


def _restore() -> None:
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        if isinstance(handler, _Deferrable):
            signal.signal(number, handler.handler)
