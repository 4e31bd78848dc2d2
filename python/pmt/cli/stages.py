"""Progress of the stages of a command."""

from __future__ import annotations

from collections.abc import Callable

from pmt._util.progress import ProgressLine

__all__ = ["stage"]


def stage(name: str) -> Callable[[int, int], None]:
    """Return a ``progress(done, in_all)`` that shows a line with the stage's name.

    The line is on standard error, on a terminal only, and gone when all is done.
    """
    line: ProgressLine | None = None

    def progress(done: int, total: int) -> None:
        nonlocal line
        if line is None or line.total != total:
            line = ProgressLine(total)
        line.update(done, name)
        if done == total:
            line.clear()

    return progress
