"""The loop of a training run, the same for every trainer.

It prepares the model, keeps to the schedule, evaluates after every phase and epoch, ends with the
best state, and where there is a run folder writes metrics and checkpoints, from which an
interrupted run continues bit for bit.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pmt._util.deferred_signals import deferred_signals
from pmt._util.progress import ProgressLine
from pmt.datasets import Dataset
from pmt.model import ImageScores, Model
from pmt.model.layers import copy_parameters
from pmt.train.callbacks import Callback, EpochEnd, Event, PhaseEnd, StepEnd, StopTraining
from pmt.train.learned_classes import learned_classes, learns_classes, with_classes
from pmt.train.prepare.preparation import Phase, PhaseWork
from pmt.train.run.config import RunConfig
from pmt.train.run.cross_validation import CrossValidation
from pmt.train.run.divergence import Divergence
from pmt.train.run.folder import RunFolder
from pmt.train.run.head_start import HeadStart
from pmt.train.run.images import Images
from pmt.train.run.keep_best import (
    EPOCH_ERRORS,
    FEW,
    PHASE_ERRORS,
    RATE_CUT,
    BestState,
    note_without_choice,
)
from pmt.train.run.metrics import RunHistory
from pmt.train.run.result import RunResult

if TYPE_CHECKING:
    from pmt.train.trainer import Trainer

__all__ = ["Progress", "Run", "stepper_state"]

_SECONDS_BETWEEN_CHECKPOINTS = 10.0

Progress = bool | Callable[[int, dict[str, Any]], None]


class Run:
    """One call of :meth:`pmt.train.trainer.Trainer.fit`."""

    def __init__(
        self,
        trainer: Trainer,
        model: Model,
        images: Images,
        folder: RunFolder | None,
        progress: Progress,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.trainer = trainer
        self.callbacks = callbacks
        self.stopped = False
        self.model = model
        self.images = images
        self.data = images.train
        self.phases = trainer.preparation.phases(model, len(self.data))
        self.schedule = trainer.schedule(model, len(self.data))
        model.prepare(self.data.images[:1])  # what does not fit is refused before a folder is made
        self.folder = folder
        self.progress = progress
        self.keeps_best = images.held_out is not None and trainer.chooses_state
        self.step = 0
        self.prepared = False
        self.settled = True  # the model is a whole state, which may be saved
        self.history = RunHistory(trainer.cost(model))
        self.best = BestState()
        self.best_image: bytes | None = None
        self.watched = Divergence()
        self.head_start = HeadStart()

    def execute(self, source: dict[str, Any]) -> RunResult:
        """Train to the end, or return the result of a run that is finished."""
        state = self._open_folder(source)
        whole = self.step == self.schedule.steps == self.history.recorded_to
        if self.folder is not None and self.folder.done and (whole or self.history.stopped):
            return self._result()
        self._make_stepper()
        self._load_state(state)
        self._prepare()
        line = ProgressLine(self.schedule.steps, done=self.step)
        saved = time.monotonic()
        try:
            self._end_epoch()  # of a run that was interrupted before it had evaluated
            while self.step < self.schedule.steps and not self.stopped:
                self._one_step(line)
                if time.monotonic() - saved > _SECONDS_BETWEEN_CHECKPOINTS:
                    self._save()
                    saved = time.monotonic()
            if self.stopped:
                self._end_early()
        finally:
            self._save()
            line.clear()
        self._refit_head()
        if self.folder is not None:
            names = self._learned_classes()
            if names is not None:
                self.folder.name_classes(names)
            self.folder.finish()
        self._warn_of_divergence()
        return self._result()

    def _refit_head(self) -> None:
        """Train the head alone once more in the best state, now on the held-out images too.

        They have chosen, and a head gains by every image. It begins as it did the first time, and
        takes as many passes. Where training the head did no good, or nothing was held out of the
        training images, nothing is done.
        """
        record = next((r for r in self.history.phases if r.get("phase") == "head"), {})
        if not record.get("best") or not self.images.were_parted:
            return
        if self.history.refit is not None:
            return
        start = time.monotonic()
        self._go_back()
        # A run that was killed after the model was written has the head already.
        preparation, data = self.trainer.preparation, self.images.data
        epochs = record["head_epochs"]
        if self.folder is None or not self.folder.best_is_refit():
            self.head_start.give(self.model)
            preparation.train_head(self.model, data, epochs)
        seconds = time.monotonic() - start
        measured, _ = self._measure(with_held_out=False)
        macs = replace(preparation.head, epochs=epochs).macs(self.model, len(data))
        totals = self.history.totals(seconds, macs)
        refit = {"kind": "refit", "phase": "refit", "step": self.step - 1, **measured, **totals}
        self._keep(refit=True)
        self._record(refit)
        self._tell(PhaseEnd(self.step, self.schedule.steps, refit))

    def _result(self) -> RunResult:
        best = self.history.best
        if best is not None and (self.history.refit or best is not self.history.last_state):
            self._go_back()
        names = self._learned_classes()
        if names is not None:
            self.model.core = with_classes(self.model, names).core
        return RunResult(
            self.model,
            self.history.of_kind("epoch"),
            phases=self.history.phases,
            kept=best or {},
            refit=self.history.refit or {},
            held_out=len(self.images.held_out or ()) if self.keeps_best else 0,
            notes=[*self.trainer.preparation.notes(self.model), *self._notes_on_choice()],
            folder=self.folder.path if self.folder else None,
        )

    def _learned_classes(self) -> tuple[str, ...] | None:
        """Return the class names that the model takes from the data, if its head has learned."""
        state = self.history.best or self.history.last_state or {}
        prepared = any(phase.get("phase") == "head" for phase in self.history.phases)
        stepped = state.get("epoch", 0) > 0 or ("epoch" in state and prepared)
        learned = stepped or state.get("phase") == "head"
        if not learned or not learns_classes(self.model, self.trainer.options):
            return None
        return learned_classes(self.model, self.images.data)

    def _notes_on_choice(self) -> list[str]:
        return [] if self.keeps_best else note_without_choice(self.data, self.trainer.options)

    def _warn_of_divergence(self) -> None:
        if self.keeps_best:
            return
        if self.watched.last is None:  # a run that was killed after its last epoch
            self._measure(with_held_out=False)
        found = self.watched.found()
        if not found:
            return
        remedy = ", and keep_best=True keeps the best state"
        if getattr(self.trainer.options, "keep_best", False):
            remedy = ", and held_out=..., images with class labels, keeps the best state"
        elif not self.trainer.chooses_state:
            remedy = ""
        warnings.warn(
            f"training has made the model worse: {found}; a learning_rate below "
            f"{self.trainer.options.learning_rate:g} may help{remedy}",
            stacklevel=4,
        )

    def _open_folder(self, source: dict[str, Any]) -> dict[str, npt.NDArray[Any]] | None:
        """Create the run, or take the model back to its checkpoint and return the state with it."""
        if self.folder is None:
            return None
        config = RunConfig(
            self.trainer.options,
            source,
            self.images.contents(self.model),
            self.trainer.name,
            extensions=self.trainer.extensions,
        )
        if not self.folder.exists():
            self.folder.create(self.model, config)
            return None
        self._check_same_run(self.folder, config)
        saved, self.step = self.folder.load_checkpoint()
        self.prepared = self.step > 0 or self.folder.is_prepared(saved)
        copy_parameters(saved, self.model)
        for record in self.folder.keep_metrics_before(self.step):
            self.history.add(record)
        self.stopped = self.history.stopped
        return self.folder.load_state(saved)

    def _check_same_run(self, folder: RunFolder, config: RunConfig) -> None:
        """Raise a ValueError that says what differs, if the folder belongs to another run."""
        trainer = self.trainer
        differences = [f"trainer: there {folder.trainer()!r}, here {trainer.name!r}"]
        if folder.trainer() == trainer.name:
            there = folder.config(type(trainer.options))
            if not there.contents:
                raise ValueError(
                    f"out={str(folder.path)!r} holds a run of an older version of pmt, which did "
                    "not note which model and data it is of; start it again in another folder"
                )
            if folder.is_checkpoint(self.model):  # it came from this very run
                model_crc = there.contents.get("model_crc32", 0)
                config = replace(config, contents={**config.contents, "model_crc32": model_crc})
            differences = there.differences(config)
        if differences:
            raise ValueError(
                f"out={str(folder.path)!r} holds a run with other options or data; choose another "
                f"folder, or give what it began with: {'; '.join(differences)}"
            )

    def _load_state(self, state: dict[str, npt.NDArray[Any]] | None) -> None:
        if state is None or not self.prepared:
            return
        rest = self.watched.load_state(self.best.load_state(self.head_start.load_state(state)))
        try:
            self.stepper.load_state(rest)
        except ValueError as error:
            where = self.folder.path if self.folder else ""
            raise ValueError(f"{where}: {error}; the run cannot be resumed") from error
        # The best model is written after its checkpoint, which a crash may have come between.
        best = self.history.best
        behind = best is not None and best["step"] + 1 == self.step > 0
        if self.folder is not None and behind and not self.folder.best_is_refit():
            self.folder.save_best(self.model, step=self.step)

    def _make_stepper(self) -> None:
        self.stepper = self.trainer.stepper(self.model, len(self.data))
        self.first = self.step

    def _prepare(self) -> None:
        """Measure the original model, and prepare it; a run that has begun is prepared."""
        if self.prepared:
            return
        validation = self._cross_validation()
        self._end_phase(None, PhaseWork(0), 0.0, validation)
        self.settled = False
        for phase in self.phases:
            if phase.name == "head" and self.keeps_best and self.images.were_parted:
                self.head_start.take(self.model)
            start = time.monotonic()
            work = phase.run(self.model, self.data)
            self._make_stepper()
            self._end_phase(phase, work, time.monotonic() - start, validation)
        self.settled = self.prepared = True
        if self.phases:
            self._save()

    def _cross_validation(self) -> CrossValidation | None:
        """Return the judge of the head, where too few images are held out of these to be it."""
        trains_head = any(phase.name == "head" for phase in self.phases)
        few = self.images.were_parted and len(self.images.held_out or ()) < FEW
        if not self.keeps_best or not few or not trains_head:
            return None
        seed = self.trainer.options.seed
        return CrossValidation(self.model, self.images.data, seed, self._score)

    def _end_phase(
        self,
        phase: Phase | None,
        work: PhaseWork,
        seconds: float,
        validation: CrossValidation | None,
    ) -> None:
        """Measure and record a phase, unless that is done; revert it where it has done harm."""
        name = "start" if phase is None else phase.name
        measured, scores = self._measure()
        better, worse = self._judged(phase, scores, validation, measured)
        kind = "start" if phase is None else "phase"
        record = {"kind": kind, "phase": name, "step": -1, **measured, **work.figures}
        if self.keeps_best:
            self.best.add(scores, better)
            record["best"] = better
        record.update(self.history.totals(seconds, work.macs))
        known = [phase.get("phase") for phase in self.history.phases]
        if name not in known and (measured or name != "start"):
            self._record(record)
        if better:
            self._keep()
        elif worse:
            self._go_back()
            self._make_stepper()
        self._tell(PhaseEnd(0, self.schedule.steps, record))

    def _judged(
        self,
        phase: Phase | None,
        scores: ImageScores,
        validation: CrossValidation | None,
        measured: dict[str, float],
    ) -> tuple[bool, bool]:
        """Return whether a phase is the best state so far, and whether it is to be reverted.

        A head that cross-validation judges is reverted unless it is better: the few images held
        out could not tell later. Its figures are added to those that are ``measured``.
        """
        better = self.keeps_best and self.best.is_better(scores, PHASE_ERRORS)
        worse = self._backtracks and self.best.is_worse(scores)
        if validation is None:
            return better, worse
        if phase is None:
            measured.update(validation.start())
        elif phase.name == "head":
            better, figures = validation.judge(phase)
            measured.update(figures)
            worse = self._backtracks and not better
        elif not worse:
            validation.follow(phase, better)
        return better, worse

    def _tell(self, event: Event) -> None:
        """Tell the callbacks; one of them may end the run."""
        for callback in self.callbacks:
            try:
                self.stopped |= callback(event) is True
            except StopTraining:
                self.stopped = True

    def _end_early(self) -> None:
        """End a run before its last step, with an evaluation; nothing continues from here."""
        if self.step == self.schedule.steps or self.history.stopped:
            return
        if self.step > 0 and self.history.recorded_to != self.step:
            self._finish_epoch()
        self._record({"kind": "stop", "step": self.step - 1})

    @property
    def _backtracks(self) -> bool:
        return self.keeps_best and bool(getattr(self.trainer.options, "backtrack", False))

    def _measure(self, with_held_out: bool = True) -> tuple[dict[str, float], ImageScores]:
        """Measure the model on the images to watch and on those held out."""
        measured, scores = {}, _NO_SCORES
        for name, data in (("valid", self.images.valid), ("held_out", self.images.held_out)):
            if data is None or (name == "held_out" and not with_held_out):
                continue
            scores = self._watch(data) if name == "valid" else self._score(self.model, data)
            found = scores.evaluation
            measured.update({f"{name}_loss": found.loss, f"{name}_accuracy": found.accuracy})
        return measured, scores

    def _watch(self, data: Dataset) -> ImageScores:
        """Score the model on the images to watch, by cross-entropy."""
        scores = self.stepper.score_images(self.model, data, self.trainer.threads)
        self.watched.add(scores)
        return scores

    def _score(self, model: Model, data: Dataset) -> ImageScores:
        """Score a model on images that choose among the states.

        By the loss that is trained; by cross-entropy where the training reads no class labels.
        """
        labeled = self.data.has_class_labels
        score = self.stepper.score_by_loss if labeled else self.stepper.score_images
        return score(model, data, self.trainer.threads)

    def _keep(self, refit: bool = False) -> None:
        """Keep the model, the best so far, or that with its head trained on all images."""
        if self.folder is not None:
            self.folder.save_best(self.model, step=self.step, refit=refit)
        else:
            self.best_image = self.model.image()

    def _go_back(self) -> None:
        """Give the model the parameters of the best state."""
        image = self.best_image if self.folder is None else self.folder.best.read_bytes()
        assert image is not None
        copy_parameters(Model(image), self.model)

    def _one_step(self, line: ProgressLine) -> None:
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
        with deferred_signals():
            self._record(record)
            self.step += 1
        self._tell(StepEnd(self.step, self.schedule.steps, record))
        self._end_epoch()
        if callable(self.progress):
            self.progress(self.step, record)
        elif self.progress:
            line.update(self.step, f"loss {result['loss']:.4f}")

    def _learning_rate(self) -> float:
        """Return the schedule's learning rate, less after each epoch that was reverted."""
        rate = self.schedule.learning_rate(self.step)
        cuts = self.history.steps_back
        return float(f"{rate * RATE_CUT**cuts:.6g}") if cuts else rate

    def _end_epoch(self) -> None:
        """Evaluate and record an epoch that has ended, unless that is done."""
        if self.schedule.ends_epoch(self.step) and self.history.recorded_to != self.step:
            self._finish_epoch()

    def _finish_epoch(self) -> None:
        """Evaluate and record the epoch; keep the state, or take it back."""
        measured, scores = self._measure()
        self.settled = False
        worse = self._backtracks and self.best.is_worse(scores)
        better = self.keeps_best and self.best.take(scores, EPOCH_ERRORS)
        self._record(
            {
                "kind": "epoch",
                "step": self.step - 1,
                "epoch": self.schedule.epochs_after(self.step),
                **self.history.training_figures(self.trainer.options.batch),
                **measured,
                **({"best": better} if self.keeps_best else {}),
                **({"taken_back": True} if worse else {}),
                **self.history.totals(),
                **self.stepper.describe(),
            }
        )
        if worse:
            self._take_back()
        self.settled = True
        if better:
            self._save()  # first: the best model is never newer than the checkpoint
            self._keep()
        self._tell(EpochEnd(self.step, self.schedule.steps, self.history.records[-1]))

    def _take_back(self) -> None:
        """Go back to the best state, with a stepper that forgets the way from there."""
        state = self.stepper.state_without_momentum()
        self._go_back()
        self._make_stepper()
        self.stepper.load_state(state)

    def _record(self, record: dict[str, Any]) -> None:
        self.history.add(record)
        if self.folder is not None:
            self.folder.append(record)

    def _save(self) -> None:
        whole = self.settled and self.stepper.steps_taken == self.step - self.first
        # Until it is prepared, the folder holds the original model.
        if self.folder is not None and whole and self.prepared:
            chosen = self.best.state() if self.keeps_best else self.watched.state()
            state = {**self.stepper.state(), **chosen, **self.head_start.state()}
            self.folder.save_checkpoint(self.model, step=self.step, state=state)


def stepper_state(state: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Return those arrays of a checkpoint that are the stepper's, not the run's."""
    return Divergence().load_state(BestState().load_state(HeadStart().load_state(state)))


_NO_SCORES = ImageScores(np.empty(0), np.empty(0, np.bool_))
