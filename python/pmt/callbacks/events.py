"""Events of a run, and the base of callbacks that they are given to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


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
        Steps of the whole run.
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
