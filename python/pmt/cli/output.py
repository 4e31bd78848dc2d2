"""Where a command's words, tables, progress and figures go."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pmt._util import atomic_file
from pmt._util.printable import printable
from pmt._util.progress import ProgressLine
from pmt.cli.process import put
from pmt.train.run_folder import RunFolder
from pmt.train.run_metrics import MetricsReader
from pmt.train.schedule import Schedule

__all__ = [
    "EpochLines",
    "Output",
    "stage",
    "table",
]


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[str] = ()) -> str:
    """Lay out a table.

    Parameters
    ----------
    titles : sequence of str
        Title of every column.
    rows : sequence of sequence of str
        Cells; control characters are escaped, so that a name stays in its cell.
    left : sequence of str
        Titles of the columns to align left; the others are aligned right.

    Returns
    -------
    str
        Lines without trailing spaces, joined by newlines.
    """
    titles = [printable(title) for title in titles]
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [titles, *rows]) for i in range(len(titles))]

    def laid_out(line: Sequence[str]) -> str:
        cells = (
            cell.ljust(width) if title in left else cell.rjust(width)
            for cell, width, title in zip(line, widths, titles, strict=True)
        )
        return "  ".join(cells).rstrip()

    return "\n".join(laid_out(line) for line in [titles, *rows])


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


_COLUMNS = (
    ("epoch", "epoch", 5, "{}"),
    ("train loss", "train_loss", 10, "{:.4f}"),
    ("train acc", "train_accuracy", 9, "{:.4f}"),
    ("test loss", "valid_loss", 9, "{:.4f}"),
    ("test acc", "valid_accuracy", 8, "{:.4f}"),
    ("changed", "changed", 9, "{:,}"),
    ("forwards", "forwards", 13, "{:,}"),
    ("seconds", "seconds", 9, "{:.1f}"),
)


class EpochLines:
    """Prints the epochs of a run from its metrics, also those from before it was resumed.

    Parameters
    ----------
    folder : RunFolder
        The run.
    schedule : Schedule
        Its steps.
    output : Output
        Where the lines go. The progress line goes to standard error, if that is a terminal.
    """

    def __init__(self, folder: RunFolder, schedule: Schedule, output: Output) -> None:
        self.metrics = MetricsReader(folder.metrics)
        self.schedule = schedule
        self.output = output
        self.progress: ProgressLine | None = None
        self.titled = False

    def after_step(self, step: int, record: dict[str, Any]) -> None:
        """Show that ``step`` steps are done and that the last one gave ``record``."""
        if self.progress is None:
            self.progress = ProgressLine(self.schedule.steps, done=step - 1)
            self._print_new()
        if self.schedule.ends_epoch(step):
            self._print_new()
        self.progress.update(step, f"loss {record['loss']:.4f}")

    def finish(self) -> None:
        """Remove the progress line and print what is left."""
        self.stop()
        self._print_new()

    def stop(self) -> None:
        """Remove the progress line."""
        if self.progress is not None:
            self.progress.clear()

    def _print_new(self) -> None:
        for record in self.metrics.new():
            if record["kind"] not in ("start", "epoch"):
                continue
            self.stop()
            if not self.titled:
                self.output.text("  ".join(title.rjust(width) for title, _, width, _ in _COLUMNS))
                self.titled = True
            self.output.text(_line(record))


def _line(record: dict[str, Any]) -> str:
    cells = []
    for _, key, width, form in _COLUMNS:
        value = {"epoch": "start", **record}.get(key, "")
        cells.append((value if isinstance(value, str) else form.format(value)).rjust(width))
    return "  ".join(cells).rstrip()


class Output:
    """Text for people and JSON for programs.

    Parameters
    ----------
    json_path : str or None
        File for the JSON; ``"-"`` is standard output, and the text then goes to standard error.

    Raises
    ------
    FileNotFoundError
        If the file's folder does not exist; found out before the work, not after it.
    """

    def __init__(self, json_path: str | None) -> None:
        self.json_path = json_path
        self.stream = sys.stderr if json_path == "-" else sys.stdout
        if json_path not in (None, "-") and not Path(str(json_path)).absolute().parent.is_dir():
            raise FileNotFoundError(f"--json {json_path}: its folder does not exist; create it")

    def text(self, text: str) -> None:
        """Print text at once, so that a log can be followed; control characters are escaped."""
        put(printable(text, keep="\n\t") + "\n", self.stream)

    def figures(self, figures: dict[str, Any]) -> None:
        """Write the figures as JSON, if they were asked for."""
        if self.json_path is None:
            return
        text = json.dumps(figures, indent=2) + "\n"
        if self.json_path == "-":
            put(text, sys.stdout)
        else:
            atomic_file.write_text(self.json_path, text)
