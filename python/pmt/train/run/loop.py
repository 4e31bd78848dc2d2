"""The loop of a training run, the same for every trainer: phases, then steps.

After every phase and epoch the model is measured, its observers judge that state, and the loop
keeps it, goes back to the best one, or goes on. A store writes metrics and checkpoints, from which
an interrupted run continues bit for bit.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt.callbacks import CallbackLike, EpochEnd, Event, PhaseEnd, StepEnd
from pmt.datasets import Dataset
from pmt.errors import OptionWarning
from pmt.model import ImageScores, Model
from pmt.model.layers import copy_parameters
from pmt.train.prepare.preparation import HEADS, Phase, PhaseWork
from pmt.train.run.folder import RunFolder
from pmt.train.run.head import CrossFit, CrossValidation, HeadStart, Refit, note_on_cross_fit
from pmt.train.run.keep_best import (
    FEW,
    Images,
    KeepBest,
    cut_rate,
    note_on_rare_classes,
    note_without_choice,
)
from pmt.train.run.metrics import RunHistory, StateRecord
from pmt.train.run.observers import (
    Arrays,
    Callbacks,
    Divergence,
    Observer,
    Progress,
    ShownProgress,
    State,
    figures_of,
)
from pmt.train.run.result import RunResult
from pmt.train.run.store import FolderStore, MemoryStore
from pmt.train.training_data import learned_classes, learns_classes, with_classes

if TYPE_CHECKING:
    from pmt.train.trainer import Trainer

_SECONDS_BETWEEN_CHECKPOINTS = 10.0
_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())


class Run:
    """One call of :meth:`pmt.train.trainer.Trainer.fit`."""

    original: Model  # before the preparation, once that has begun

    def __init__(
        self,
        trainer: Trainer,
        model: Model,
        images: Images,
        folder: RunFolder | None,
        progress: Progress,
        callbacks: Sequence[CallbackLike] = (),
    ) -> None:
        self.trainer = trainer
        self.model = model
        self.images = images
        self.data = images.train
        self.preparation = trainer.preparation
        self.phases = self.preparation.phases(model, len(self.data), pixels=self.data.has_pixels)
        if self.keeps_best:
            self.phases += self.preparation.alternatives(self.phases)
        self.schedule = trainer.schedule(model, len(self.data), pixels=self.data.has_pixels)
        self.step = 0  # taken, in earlier calls too
        self.stopped = False  # before the last step
        self.whole = False  # whether the model is a state of a prepared run, which may be saved
        self.history = RunHistory(trainer.cost(model))
        self.store = MemoryStore() if folder is None else FolderStore(folder)
        reports: list[Observer] = [Callbacks(callbacks), ShownProgress(progress), self.store]
        judges = self._judges() if self.keeps_best else []
        choice = trainer.cross_fitting(model)
        self.cross_fit = None if choice == "never" else CrossFit(choice, self.schedule, self.data)
        self.head_start = HeadStart()
        self.observers = [self.head_start, *filter(None, [self.cross_fit]), *judges, *reports]
        if not self.keeps_best:
            self.observers.append(Divergence())

    @property
    def keeps_best(self) -> bool:
        """Whether held-out images choose the state that the run ends in."""
        return self.images.held_out is not None and self.trainer.chooses_state

    @property
    def _place(self) -> str:
        return str(self.store.folder.path) if self.store.folder else "a run in memory"

    @property
    def goes_by_cross_fitted_heads(self) -> bool:
        """Whether the head is solved anew for the steps, on other images than theirs."""
        return self.cross_fit is not None and self.cross_fit.is_on

    def _plan(self) -> None:
        """Choose how the steps are taken, after the preparation."""
        if self.cross_fit is not None:
            self.cross_fit.plan(self)

    def _judges(self) -> list[Observer]:
        """Return who judges the states on held-out images, the judge of the head first."""
        options, images = self.trainer.options, self.images
        keep_best = KeepBest(backtrack=bool(getattr(options, "keep_best", False)))
        if not images.held_out_was_split_off:
            return [keep_best]
        few = len(images.held_out or ()) < FEW and images.data.has_class_labels
        if few and any(phase.name == "head" for phase in self.phases):
            folds = CrossValidation(images.data, self._affordable_folds())
            return [folds, keep_best, Refit()]
        return [keep_best, Refit()]

    def _affordable_folds(self) -> int:
        """Return how many trainings of the phases take as many MACs as the whole run."""
        of_phases = sum(phase.macs for phase in self.phases)
        return 1 + self.schedule.steps * self.history.step_cost.macs // of_phases

    def execute(self, source: dict[str, Any]) -> RunResult:
        """Train to the end, or return the result of a run that is finished."""
        self.store.open(self, source)
        if self.whole:
            self._plan()
        complete = self.step == self.schedule.steps == self.history.recorded_to
        if self.store.is_done() and (complete or self.stopped):
            _log.info("%s was finished before: its result is returned", self._place)
            return self._result()
        _log.info(
            "%s: %d steps on %d images, kernels %s, threads %d",
            *(self._place, self.schedule.steps, len(self.data)),
            *(_core.kernels(), _core.threads(self.trainer.threads)),
        )
        self._make_stepper()
        if self.whole:
            _log.info("%s is resumed after step %d", self._place, self.step)
            self.store.resume(self)
        else:
            self._prepare()
        for observer in self.observers:
            observer.begin(self)
        saved = time.monotonic()
        try:
            self._end_epoch()  # of a run that was interrupted before it had evaluated
            while self.step < self.schedule.steps and not self.stopped:
                if self._exceeds_budget():
                    self.stopped = True
                    break
                self._one_step()
                if time.monotonic() - saved > _SECONDS_BETWEEN_CHECKPOINTS:
                    self._save()
                    saved = time.monotonic()
            if self.stopped:
                self._end_early()
        finally:
            self._save()
            for observer in self.observers:
                observer.pause(self)
        for observer in self.observers:
            observer.end(self)
        self._warn_of_budget()
        return self._result()

    def _exceeds_budget(self) -> bool:
        """Whether a step like the one that took most so far would exceed the budget.

        The schedule counts on equal steps; those of a user's own estimator may differ.
        """
        history, budget = self.history, self.trainer.options.macs
        most = history.most_step_macs
        return budget > 0 < most and history.step_macs + most > self.schedule.macs

    def _warn_of_budget(self) -> None:
        """Warn where steps were not as planned: a budget that ended the run, or was missed."""
        history, schedule, budget = self.history, self.schedule, self.trainer.options.macs
        ended = self.step < schedule.steps and self._exceeds_budget()
        missed = not schedule.macs / 2 <= history.step_macs <= schedule.macs
        if budget > 0 < history.most_step_macs and (
            ended or (missed and self.step == schedule.steps)
        ):
            message = (
                f"={budget}: the run ended after {self.step} of {schedule.steps} planned steps, "
                f"which took {history.step_macs} of the {schedule.macs} multiply-accumulates left "
                f"for steps; they were planned by {history.step_cost.macs} a step, and differ: "
                "give epochs instead, or let all steps take the same work"
            )
            warnings.warn(OptionWarning("macs", message), stacklevel=4)

    def _result(self) -> RunResult:
        best = self.history.best
        if best is not None and (self.history.refit or best is not self.history.last_state):
            self.go_back()
        names = self.learned_classes()
        if names is not None:
            self.model.core = with_classes(self.model, names).core
        notes = [*self.trainer.preparation.notes(self.model, self.data)]
        if not self.keeps_best:
            notes += note_without_choice(self.data, self.trainer.options)
        elif self.images.held_out_was_split_off:
            notes += note_on_rare_classes(self.images.data, self.trainer.options)
        notes += note_on_cross_fit(self)
        notes += self.preparation.notes_on_input(self.model)
        return RunResult(
            self.model,
            cast("list[StateRecord]", self.history.of_kind("epoch")),
            phases=cast("list[StateRecord]", self.history.phases),
            kept=cast("StateRecord", best or {}),
            refit=cast("StateRecord", self.history.refit or {}),
            held_out=len(self.images.held_out or ()) if self.keeps_best else 0,
            notes=notes,
            folder=self.store.folder.path if self.store.folder else None,
        )

    def learned_classes(self) -> tuple[str, ...] | None:
        """Return the class names that the model takes from the data, if its head has learned."""
        state = self.history.best or self.history.last_state or {}
        prepared = any(phase.get("phase") in HEADS for phase in self.history.phases)
        stepped = state.get("epoch", 0) > 0 or ("epoch" in state and prepared)
        learned = stepped or state.get("phase") in HEADS
        if not learned or not learns_classes(self.model, self.trainer.options):
            return None
        return learned_classes(self.model, self.images.data)

    def _make_stepper(self) -> None:
        self.stepper = self.trainer.stepper(self.model, len(self.data))
        self.first = self.step

    def renew_stepper(self, *, momentum: bool = True) -> None:
        """Let the stepper, in its state, go on from a model that was changed beside it."""
        earlier = self.stepper
        self._make_stepper()
        self.stepper.go_on_from(earlier, momentum=momentum)

    def _prepare(self) -> None:
        """Measure the original model, and prepare it."""
        self.original = self.model.copy()
        self._end_phase(None, PhaseWork(0), 0.0)
        for phase in self.phases:
            before = phase.begin(self.model, self.original)
            for observer in self.observers:
                observer.before_phase(self, phase)
            start = time.monotonic()
            work = phase.run(self.model, self.data)
            if not work.changed:
                copy_parameters(before, self.model)
            self._make_stepper()
            state = self._end_phase(phase, work, time.monotonic() - start)
            if phase.from_start and state.better is False:
                copy_parameters(before, self.model)
                self._make_stepper()
        self.whole = True
        self._plan()
        if self.phases:
            self._save()

    def _end_phase(self, phase: Phase | None, work: PhaseWork, seconds: float) -> State:
        """Measure, judge and record a phase once."""
        name, kind = ("start", "start") if phase is None else (phase.name, "phase")
        state = self._judged(name, phase, work)
        record = {
            "kind": kind,
            "phase": name,
            "step": -1,
            **state.figures,
            **work.figures,
            **_verdict(state),
            **self.history.totals(seconds + state.seconds, work.macs + state.macs),
        }
        known = [phase.get("phase") for phase in self.history.phases]
        if name not in known and (state.figures or phase is not None):
            self.record(record)
        if state.worse:
            self.go_back()
            self._make_stepper()
        if state.better:
            self.store.keep(self)
        self._go_on(state, PhaseEnd(0, self.schedule.steps, record))
        return state

    def _one_step(self) -> None:
        for observer in self.observers:
            observer.before_step(self)
        start = time.monotonic()
        indices = self.schedule.indices(self.step)
        result = self.stepper.step(
            self.model.prepare(self.data.images[indices]),
            np.ascontiguousarray(self.data.labels[indices]),
            self.step,
            self._learning_rate(),
        )
        record = {"kind": "step", "step": self.step, **result}
        record["seconds"] = round(time.monotonic() - start, 4)
        self._record_step(record)
        self.tell(StepEnd(self.step, self.schedule.steps, record))
        self._end_epoch()
        for observer in self.observers:
            observer.after_step(self, record)

    def _record_step(self, record: dict[str, Any]) -> None:
        """Record and count a step, also where a signal's handler raises between the two."""
        try:
            self.record(record)
        except (KeyboardInterrupt, SystemExit):
            self.store.record_once(record)
            self.step += 1
            raise
        self.step += 1

    def _learning_rate(self) -> float:
        """Return the schedule's learning rate, less after each epoch that was reverted."""
        return cut_rate(self.schedule.learning_rate(self.step), self.history.steps_back)

    def _end_epoch(self) -> None:
        """Evaluate and record an epoch that has ended, once."""
        if self.schedule.ends_epoch(self.step) and self.history.recorded_to != self.step:
            self._finish_epoch()

    def _end_early(self) -> None:
        """End a run before its last step, with an evaluation; nothing continues from here."""
        if self.step == self.schedule.steps or self.history.stopped:
            return
        if self.step > 0 and self.history.recorded_to != self.step:
            self._finish_epoch()
        self.record({"kind": "stop", "step": self.step - 1})

    def _finish_epoch(self) -> None:
        """Measure, judge and record the epoch; keep the state, or take it back."""
        for observer in self.observers:
            observer.before_state(self)
        state = self._judged("epoch")
        record = {
            "kind": "epoch",
            "step": self.step - 1,
            "epoch": self.schedule.epochs_after(self.step),
            **self.history.training_figures(self.trainer.options.batch),
            **state.figures,
            **_verdict(state),
            **({"taken_back": True} if state.worse else {}),
            **self.history.totals(state.seconds, state.macs),
        }
        self.record(record)
        if state.worse:
            self._take_back()
        self.whole = True
        if state.better:
            self._save()  # first: the best model is never newer than the checkpoint
            self.store.keep(self)
        self._go_on(state, EpochEnd(self.step, self.schedule.steps, record))

    def _take_back(self) -> None:
        """Go back to the best state, and reset the optimizer."""
        self.go_back()
        self.renew_stepper(momentum=False)

    def go_back(self) -> None:
        """Give the model the parameters of the best state."""
        _log.info("%s: back to the best state, after step %d", self._place, self.step)
        copy_parameters(self.store.best(), self.model)

    def scores(self, *names: str) -> dict[str, ImageScores]:
        """Score the model on the images of these names, if there are any.

        Those to watch, ``"valid"``, are scored by cross-entropy, those ``"held_out"`` as
        :meth:`score` does.
        """
        found = {}
        if "valid" in names and self.images.valid is not None:
            threads = self.trainer.threads
            found["valid"] = self.stepper.score_images(self.model, self.images.valid, threads)
        if "held_out" in names and self.images.held_out is not None:
            found["held_out"] = self.score(self.model, self.images.held_out)
        return found

    def score(self, model: Model, data: Dataset) -> ImageScores:
        """Score a model on images that choose among the states.

        By the loss that is trained; by cross-entropy where the training reads no class labels.
        """
        labeled = self.data.has_class_labels
        score = self.stepper.score_by_loss if labeled else self.stepper.score_images
        return score(model, data, self.trainer.threads)

    def _judged(
        self, name: str, phase: Phase | None = None, work: PhaseWork | None = None
    ) -> State:
        """Measure the model, and let the observers judge it."""
        scores = self.scores("valid", "held_out")
        state = State(name, scores, figures_of(scores), phase, work=work)
        self.whole = False
        for observer in self.observers:
            observer.judge(self, state)
        return state

    def _go_on(self, state: State, event: Event) -> None:
        for observer in self.observers:
            observer.after_state(self, state)
        self.tell(event)

    def tell(self, event: Event) -> None:
        """Tell the observers that a phase, step or epoch has ended."""
        for observer in self.observers:
            observer.tell(self, event)

    def record(self, record: dict[str, Any]) -> None:
        """Add a record to the history, and to the metrics."""
        self.history.add(record)
        self.store.record(record)

    def _save(self) -> None:
        if self.whole and self.stepper.steps_taken == self.step - self.first:
            self.store.save(self)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the state of the stepper and the observers, for a checkpoint."""
        state = self.stepper.state()
        for observer in self.observers:
            state = {**state, **observer.state()}
        return state

    def load_state(self, state: Arrays) -> None:
        """Restore the state that :meth:`state` returned."""
        for observer in self.observers:
            observer.load_state(state)
        self.stepper.load_state(stepper_state(state))


def _verdict(state: State) -> dict[str, bool]:
    return {} if state.better is None else {"best": state.better}


def stepper_state(state: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Return those arrays of a checkpoint that are the stepper's, not the observers'."""
    others = {*Divergence.arrays, *KeepBest.arrays, *HeadStart.arrays, *CrossFit.arrays}
    return {name: array for name, array in state.items() if name not in others}
