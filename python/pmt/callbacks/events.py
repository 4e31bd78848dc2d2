"""Events of a run, the base of callbacks that they are given to, and those that come with pmt."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmt._util.checks import check_type, checked_range
from pmt._util.extras import import_extra


class StopTraining(Exception):
    """Raised in a callback, it ends the run after the step under way, in the best state."""


@dataclass(frozen=True)
class Event:
    """Something that a run has done.

    Attributes
    ----------
    step : int
        Steps done so far.
    steps : int
        Steps of the whole run; with a budget, before the first step, at most.
    record : dict
        A copy of the figures, as in ``metrics.jsonl``.
    """

    step: int
    steps: int
    record: Mapping[str, Any]


@dataclass(frozen=True)
class PhaseEnd(Event):
    """The original model was measured, or was aligned, or its head was trained.

    ``record["phase"]`` is ``"start"``, ``"aligned"``, ``"input"``, ``"head"``, ``"head_alone"`` or,
    after the last epoch, ``"refit"``; losses and accuracies are those of ``RunResult.phases``.
    """


@dataclass(frozen=True)
class StepEnd(Event):
    """A step was taken: ``loss``, ``changed`` and, with labels, ``correct`` are in the record."""


@dataclass(frozen=True)
class EpochEnd(Event):
    """An epoch has ended and was measured, see ``RunResult.epochs``."""


class Callback:
    """Base of callbacks that tell phases, steps and epochs apart; any callable is one, too.

    Each method may return True to end the run, as :class:`StopTraining` does.
    """

    def on_phase(self, event: PhaseEnd) -> bool | None:
        """Called after a phase."""

    def on_step(self, event: StepEnd) -> bool | None:
        """Called after a step."""

    def on_epoch(self, event: EpochEnd) -> bool | None:
        """Called after an epoch."""

    def __call__(self, event: Event) -> bool | None:
        """Call the method for the event."""
        if isinstance(event, PhaseEnd):
            return self.on_phase(event)
        if isinstance(event, StepEnd):
            return self.on_step(event)
        return self.on_epoch(event) if isinstance(event, EpochEnd) else None


CallbackLike = Callable[[Event], bool | None]


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
        If ``patience`` is not an integer, or ``monitor`` is not text.
    ValueError
        If ``patience`` is below 1; at the end of the first epoch, if the epoch has no such figure.
    """

    def __init__(self, patience: int = 3, monitor: str = "held_out_loss") -> None:
        self.patience = checked_range("patience", patience, 1)
        check_type("monitor", monitor, str, "the name of a figure of an epoch, as held_out_loss")
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
