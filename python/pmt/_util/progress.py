"""Progress of long work: rate and time left, one line."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from pmt._util.text import printable


def duration(seconds: float) -> str:
    """Format a duration: ``"42 s"``, ``"3 min 05 s"``, ``"2 h 10 min"``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def in_notebook() -> bool:
    """Whether the code runs in the kernel of a notebook: Jupyter, or a program built on it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return any(kind.__name__ == "ZMQInteractiveShell" for kind in type(shell).__mro__)


class ProgressLine:
    """A line that is redrawn on a terminal or in a notebook, and left out elsewhere.

    It tells of ``total`` steps, each a ``unit``, of which ``done`` were taken before this run, on
    standard error, in a notebook on standard output. It is removed at the end of a ``with`` block.
    """

    def __init__(
        self, total: int, *, done: int = 0, unit: str = "step", stream: TextIO | None = None
    ) -> None:
        self.total = total
        self.unit = unit
        self.first = done
        # A notebook shows standard error in red, as if something were wrong.
        own = sys.stdout if in_notebook() else sys.stderr
        wanted = stream if stream is not None else own
        shows = wanted is not None and (wanted.isatty() or in_notebook())
        self.terminal = wanted if shows else None
        # A notebook shows no escape sequences; spaces cover what was longer.
        self.erase = "\r" if in_notebook() else "\r\x1b[K"
        self.width = 0
        self.start = time.monotonic()
        self.shown = 0.0

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *error: object) -> None:
        self.clear()

    def update(self, done: int, text: str) -> None:
        """Show that ``done`` steps are done; at most ten times a second."""
        now = time.monotonic()
        if self.terminal is None or (now - self.shown < 0.1 and done < self.total):
            return
        self.shown = now
        line = self.line(done, text, now - self.start)
        self.terminal.write(self.erase + line.ljust(self.width if in_notebook() else 0))
        self.width = len(line)
        self.terminal.flush()

    def line(self, done: int, text: str, elapsed: float) -> str:
        """Return the line: share done, rate, time left, and ``text``."""
        rate = (done - self.first) / elapsed if elapsed > 0 else 0.0
        left = duration((self.total - done) / rate) if rate > 0 else "?"
        unit = self.unit
        speed = (
            f"{rate:.1f} {unit}s/s" if rate >= 1 else f"{1 / rate:.1f} s/{unit}" if rate else "?"
        )
        share = f"{100 * done // self.total:3d} %  {unit} {done}/{self.total}"
        return f"{share}  {speed}  {left} left  {printable(text)}"

    def clear(self) -> None:
        """Remove the line."""
        if self.terminal is not None and self.shown:
            blank = " " * self.width + "\r" if in_notebook() else ""
            self.terminal.write(self.erase + blank)
            self.terminal.flush()
