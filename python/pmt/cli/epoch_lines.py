"""Epochs as they end, one line each, above the progress line."""

from __future__ import annotations

from typing import Any

from pmt._util.progress import ProgressLine
from pmt.cli.output import Output
from pmt.train.run_folder import RunFolder
from pmt.train.run_metrics import MetricsReader
from pmt.train.schedule import Schedule

__all__ = ["EpochLines"]

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
