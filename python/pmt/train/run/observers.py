"""Observers of a run: they see its states, steps and end, and may judge a state.

Here are the observers that only report; others are in ``keep_best.py``, ``head.py`` and
``store.py``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pmt._util.arrays import Array
from pmt._util.checks import is_iterable, kind_of
from pmt._util.progress import ProgressLine
from pmt._util.text import counted
from pmt.callbacks import CallbackLike, Event, StopTraining
from pmt.model import ImageScores
from pmt.protocol.comparison import is_worse
from pmt.train.prepare.input_choice import LIKELY_TRIALS
from pmt.train.prepare.preparation import Phase, PhaseWork

if TYPE_CHECKING:
    from pmt.train.run.loop import Run

Arrays = Mapping[str, Array]
Progress = bool | Callable[[int, dict[str, Any]], None]

_STACK = 4  # of a warning: the caller of fit


@dataclass
class State:
    """The model as it is before training, after a phase or after an epoch."""

    name: str  # `"start"`, the name of a phase, or `"epoch"`
    # The watched images' by `"valid"`, the held-out ones' by `"held_out"`, if there are any.
    scores: dict[str, ImageScores]
    figures: dict[str, float]  # for its record: losses, accuracies, and what observers add
    phase: Phase | None = None  # the phase that led to it
    # Whether it is kept as the best state so far; None where nothing has judged it.
    better: bool | None = None
    worse: bool = False  # whether the run goes back to the best state
    work: PhaseWork | None = None  # the work of that phase
    # Time and multiply-accumulates of models that were trained to judge the state.
    seconds: float = 0.0
    macs: int = 0

    @property
    def is_alternative(self) -> bool:
        """Whether its phase is an alternative to those before it."""
        return self.phase is not None and self.phase.is_alternative

    @property
    def phase_again(self) -> Phase:
        """The phase for other images, with its choices."""
        assert self.phase is not None
        again = self.work.again if self.work is not None else None
        return replace(self.phase, run=again or self.phase.run)


class Observer:
    """Watches a run; every method does nothing unless it is overridden."""

    arrays: tuple[str, ...] = ()  # names of what it keeps in checkpoints

    def before_phase(self, run: Run, phase: Phase) -> None:
        """Called before a phase of the preparation."""

    def judge(self, run: Run, state: State) -> None:
        """Called with a state that was measured, before its record is written."""

    def after_state(self, run: Run, state: State) -> None:
        """Called after the state was kept or left, with the verdict of all judges in it."""

    def tell(self, run: Run, event: Event) -> None:
        """Called after a phase, step or epoch is recorded, and the model settled."""

    def begin(self, run: Run) -> None:
        """Called after the preparation, before the first step that is taken now."""

    def before_step(self, run: Run) -> None:
        """Called before a step."""

    def before_state(self, run: Run) -> None:
        """Called at the end of an epoch, before the model is measured."""

    def after_step(self, run: Run, record: dict[str, Any]) -> None:
        """Called after a step, and the epoch that it may have ended."""

    def pause(self, run: Run) -> None:
        """Called after the last step that is taken now, also where an error has ended the run."""

    def end(self, run: Run) -> None:
        """Called when the run is finished."""

    def state(self) -> dict[str, Array]:
        """Return the arrays that a checkpoint holds, by :attr:`arrays`."""
        return {}

    def load_state(self, state: Arrays) -> None:
        """Restore the state that :meth:`state` returned; nothing where an array is missing."""


def check_progress(progress: object) -> None:
    """Raise a TypeError if the value is neither a bool nor a callable."""
    if not isinstance(progress, bool | np.bool_) and not callable(progress):
        raise TypeError(
            f"progress is {kind_of(progress)}: must be True, False, or a callable "
            "progress(step, record)"
        )


def checked_callbacks(callbacks: object) -> Sequence[CallbackLike]:
    """Return callbacks as a sequence, or raise a TypeError."""
    found: list[Any] = list(callbacks) if is_iterable(callbacks) else [None]
    if not all(map(callable, found)):
        raise TypeError(
            f"callbacks={callbacks!r} must be a list of callables; a single one is given as "
            "[callback]"
        )
    return found


class Callbacks(Observer):
    """Tells the user's callbacks of each phase, step and epoch; one of them may end the run."""

    def __init__(self, callbacks: Sequence[CallbackLike]) -> None:
        self.callbacks = callbacks

    def tell(self, run: Run, event: Event) -> None:
        """Tell all of them, also after one has ended the run."""
        for callback in self.callbacks:
            own = replace(event, record=deepcopy(dict(event.record)))  # history is not theirs
            try:
                run.stopped |= callback(own) is True
            except StopTraining:
                run.stopped = True


class ShownProgress(Observer):
    """Shows a line on a terminal, or calls ``progress(step, record)`` after each step."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.line: ProgressLine | None = None

    def before_phase(self, run: Run, phase: Phase) -> None:
        """Show the candidates of a choice of filters, which takes longer than the other phases."""
        self.pause(run)
        if phase.name == "input" and self._shows_line():
            line = self.line = ProgressLine(LIKELY_TRIALS, unit="candidate")
            run.preparation.input_progress = lambda n, trial: line.update(n, trial.text)

    def begin(self, run: Run) -> None:
        """Count from here: steps of earlier calls took no time of this one."""
        self.pause(run)
        if self._shows_line():
            self.line = ProgressLine(run.schedule.steps, done=run.step)

    def after_step(self, run: Run, record: dict[str, Any]) -> None:
        """Show the step."""
        if self.line is not None:
            self.line.update(run.step, f"loss {record['loss']:.4f}")
        elif callable(self.progress):
            self.progress(run.step, deepcopy(record))

    def pause(self, run: Run) -> None:
        """Remove the line."""
        if self.line is not None:
            self.line.clear()

    def _shows_line(self) -> bool:
        return bool(self.progress) and not callable(self.progress)


class Divergence(Observer):
    """Warns of a run that ends worse than it began on the images to watch.

    The first scores are in the checkpoints of a run; before they are measured they are None.
    """

    arrays = ("watched_losses", "watched_correct")

    def __init__(self) -> None:
        self.first: ImageScores | None = None
        self.last: ImageScores | None = None

    def judge(self, run: Run, state: State) -> None:
        """Take the scores of a state in."""
        self.last = state.scores.get("valid", self.last)
        self.first = self.first or self.last

    def end(self, run: Run) -> None:
        """Warn where the last scores are worse than the first ones."""
        if self.last is None:  # a run that was killed after its last epoch
            self.last = run.scores("valid").get("valid")
        found = self.found()
        if not found:
            return
        options = run.trainer.options
        rate = options.learning_rate  # 0 where nothing is trained by steps
        remedies = [f"a learning_rate below {rate:g} may help"] if rate else []
        if getattr(options, "keep_best", False):
            remedies.append("held_out=..., images with class labels, keeps the best state")
        elif run.trainer.chooses_state:
            remedies.append("keep_best=True keeps the best state")
        advice = f"; {', and '.join(remedies)}" if remedies else ""
        warnings.warn(f"training has made the model worse: {found}{advice}", stacklevel=_STACK)

    def found(self) -> str:
        """Return how the last scores are worse; empty where they are not, or not clearly.

        They are worse with a lower accuracy, and a loss higher by more than one standard error.
        """
        if self.first is None or self.last is None:
            return ""
        before, after = self.first.evaluation, self.last.evaluation
        if not is_worse(self.last, self.first) or after.accuracy >= before.accuracy:
            return ""
        return (
            f"accuracy {before.accuracy:.4f} -> {after.accuracy:.4f}, loss {before.loss:.4f} -> "
            f"{after.loss:.4f} on the "
            f"{counted(after.n, 'image that is watched', 'images that are watched')}"
        )

    def state(self) -> dict[str, Array]:
        """Return the first scores."""
        if self.first is None:
            return {}
        return dict(zip(self.arrays, (self.first.losses, self.first.correct), strict=True))

    def load_state(self, state: Arrays) -> None:
        """Restore the first scores."""
        if all(name in state for name in self.arrays):
            self.first = ImageScores(*(np.asarray(state[name]) for name in self.arrays))


def figures_of(scores: Mapping[str, ImageScores]) -> dict[str, float]:
    """Return loss and accuracy of each, as records have them."""
    found: dict[str, float] = {}
    for name, one in scores.items():
        measured = one.evaluation
        found.update({f"{name}_loss": measured.loss, f"{name}_accuracy": measured.accuracy})
    return found
