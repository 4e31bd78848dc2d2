"""Callbacks that come with pmt."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from pmt._util import atomic_file
from pmt._util.checks import checked_integer
from pmt._util.extras import import_extra
from pmt.callbacks.events import Callback, EpochEnd, Event, PhaseEnd, StepEnd

__all__ = ["CsvLog", "EarlyStopping", "ProgressBar", "TensorBoardLog"]


class EarlyStopping(Callback):
    """Ends a run whose figure has not become better for some epochs.

    Nothing is kept over a resume: the epochs are counted from where the run continues.

    Parameters
    ----------
    patience : int
        Epochs in a row without a new best value, 1 or more.
    monitor : str
        Figure of an epoch, an accuracy or one that should fall. By default the loss on the
        held-out images.

    Raises
    ------
    TypeError
        If ``patience`` is not an integer.
    ValueError
        If ``patience`` is below 1; at the end of the first epoch, if the epoch has no such figure.
    """

    def __init__(self, patience: int = 3, monitor: str = "held_out_loss") -> None:
        self.patience = checked_integer("patience", patience)
        if self.patience < 1:
            raise ValueError(f"patience={patience} must be 1 or more epochs")
        self.monitor = monitor
        self._least = float("inf")
        self._waited = 0

    def on_phase(self, event: PhaseEnd) -> None:
        """Begin anew with a run."""
        if event.record["phase"] == "start":
            self._least, self._waited = float("inf"), 0

    def on_epoch(self, event: EpochEnd) -> bool:
        """Count the epochs; return whether the run is to end."""
        if self.monitor not in event.record:
            known = ", ".join(name for name in event.record if name.endswith(("loss", "accuracy")))
            raise ValueError(
                f"monitor={self.monitor!r} is not a figure of an epoch; it has {known}"
            )
        sign = -1.0 if self.monitor.endswith("accuracy") else 1.0
        value = sign * float(event.record[self.monitor])
        self._waited = 0 if value < self._least else self._waited + 1
        self._least = min(self._least, value)
        return self._waited >= self.patience


class CsvLog:
    """Writes a line of a .csv file for each phase and epoch, whole at any time.

    A run that is resumed begins the file anew; its folder's metrics.jsonl has all lines.

    Parameters
    ----------
    path : str or pathlib.Path
        The file; one that is there is replaced.
    """

    columns = (
        *("state", "train_loss", "train_accuracy", "held_out_loss", "held_out_accuracy"),
        *("valid_loss", "valid_accuracy", "changed", "forwards", "macs", "seconds"),
    )

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._rows: list[dict[str, Any]] = []

    def __call__(self, event: Event) -> None:
        """Add a line."""
        if isinstance(event, StepEnd):
            return
        state = event.record.get("phase", event.record.get("epoch"))
        if state == "start":
            self._rows = []
        self._rows.append({**event.record, "state": state})
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self._rows)
        atomic_file.write_text(self.path, text.getvalue())


class ProgressBar:
    """Shows a bar of tqdm, in a terminal or a notebook; with ``fit(..., progress=False)``.

    Raises
    ------
    ImportError
        If tqdm is missing.
    """

    def __init__(self) -> None:
        self._tqdm = import_extra("tqdm.auto", "a progress bar needs tqdm", "callbacks").tqdm
        self._bar: Any = None

    def __call__(self, event: Event) -> None:
        """Move the bar on."""
        if event.record.get("phase") == "refit":
            return
        if self._bar is None or event.step < self._bar.n:
            if self._bar is not None:
                self._bar.close()
            self._bar = self._tqdm(total=event.steps, initial=event.step, unit="step")
        self._bar.update(event.step - self._bar.n)
        losses = {n: f"{v:.4f}" for n, v in event.record.items() if n.endswith("loss")}
        self._bar.set_postfix(losses, refresh=False)
        if event.step == event.steps and isinstance(event, EpochEnd):
            self._bar.close()
            self._bar = None


class TensorBoardLog:
    """Writes losses, accuracies and work of every phase and epoch for TensorBoard, over MACs.

    Parameters
    ----------
    folder : str or pathlib.Path
        Folder that gets the event files.

    Raises
    ------
    ImportError
        If tensorboardX is missing.
    """

    def __init__(self, folder: str | Path) -> None:
        package = import_extra("tensorboardX", "a TensorBoard log needs tensorboardX", "callbacks")
        self._writer = package.SummaryWriter(str(folder))

    def __call__(self, event: Event) -> None:
        """Write the figures."""
        if isinstance(event, StepEnd):
            return
        for name, value in event.record.items():
            if name.endswith(("loss", "accuracy")) or name in ("changed", "forwards", "seconds"):
                self._writer.add_scalar(name, value, int(event.record.get("macs", 0)))
        self._writer.flush()
