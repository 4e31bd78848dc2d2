"""The head of a run: judged by cross-validation, solved anew for its steps, and in the end.

A dozen held-out images decide by chance whether a head that some fifty others trained is kept.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Literal, cast, get_args

import numpy as np

from pmt._util.arrays import Array, DoubleArray, Int64Array
from pmt._util.text import counted
from pmt.callbacks import PhaseEnd
from pmt.datasets import Dataset
from pmt.model import ImageScores, Model
from pmt.protocol.stratification import first_of_copies, folds, units_of
from pmt.train.option_fields import Words, option
from pmt.train.prepare.linear_head import head_macs, head_op
from pmt.train.prepare.preparation import HEADS, Phase
from pmt.train.run.keep_best import ERRORS, BestState
from pmt.train.run.metrics import StateRecord
from pmt.train.run.observers import Arrays, Observer, State, figures_of
from pmt.train.schedule import Schedule

if TYPE_CHECKING:
    from pmt.train.run.loop import Run
    from pmt.train.trainer import Trainer

_FOLDS = (3, 10)  # at least, at most
# Cross-fitted heads raised the accuracy where the head's loss on its own images was 0.04 and 0.32
# times that by cross-validation, with 3,000 and 6,000 images of 100 and 196 new classes. With 240
# new images, and from 0.74 on, they changed little or nothing (lab/pages/results.md).
FITS_ITS_OWN = 0.5
ENOUGH_IMAGES = 1000

_ON_CROSS_FIT = (
    "the steps went by cross-fitted heads, as the solved head fits its own images much better than "
    "others: the training loss is that of images that the head has not seen"
)

CrossFitting = Literal["auto", "always", "never"]
CROSS_FIT = partial(
    option,
    metavar="NAME",
    help="where the {preparation} solves the head, solve it anew for each half of an epoch on the "
    "images of the other half: by a head that fits its own images they have hardly a loss to learn "
    f"from, as with many new classes. auto does so with {ENOUGH_IMAGES} images or more, if their "
    "loss is less than half of that by cross-validation",
    values=Words(get_args(CrossFitting)),
)


class CrossValidation(Observer):
    """Judges the head on all training images, each scored by a model prepared without its fold.

    A head is held to the old one as strongly in every fold as on all images, those held out too.
    Each fold has about its share of every class. There are ten folds, or as many as are
    ``affordable``: as take no more multiply-accumulates than the rest of the run; but at least
    three.
    """

    def __init__(self, data: Dataset, affordable: int) -> None:
        number = min(max(affordable, _FOLDS[0]), _FOLDS[1])
        self.data = data
        self.folds = folds(data.labels, number, units_of(data))
        # Images of rare classes are in no fold, and copies say nothing more than one of them.
        scored = np.sort(np.concatenate(self.folds))
        self.places = scored[first_of_copies(data.subset(scored))]
        self.phases: list[Phase] = []  # that the model has gone through
        self.best = BestState()
        self._seconds, self._macs = 0.0, 0  # of the work that no state has yet

    def judge(self, run: Run, state: State) -> None:
        """Judge the head: whether it is better than the best state by the scores out of fold."""
        start = time.monotonic()
        if state.name == "start":
            scores = run.score(run.model, self.data.subset(self.places))
            self._macs += len(self.places) * run.model.macs
        elif state.phase is not None and state.work is not None and state.name in HEADS:
            before = [] if state.is_alternative else self.phases
            scores = self._out_of_fold(run, [*before, state.phase_again])
        else:
            return
        better = self.best.take(scores, ERRORS, is_alternative=state.is_alternative)
        state.better = better if state.phase is not None else None
        state.figures.update(figures_of({"out_of_fold": scores}))
        state.seconds += self._seconds + time.monotonic() - start
        state.macs += self._macs
        self._seconds, self._macs = 0.0, 0

    def after_state(self, run: Run, state: State) -> None:
        """Apply an earlier phase to every fold, and note whether it is kept."""
        if state.phase is None or state.name in HEADS or state.worse:
            return
        if state.phase.from_start and not state.better:
            return
        self.phases = [*([] if state.phase.from_start else self.phases), state.phase_again]
        if state.better:
            start = time.monotonic()
            self.best.add(self._out_of_fold(run, self.phases), True)
            self._seconds += time.monotonic() - start

    def _out_of_fold(self, run: Run, phases: list[Phase]) -> ImageScores:
        """Return the scores of the images, each by a model prepared without its fold."""
        losses: DoubleArray = np.empty(len(self.data))
        correct = np.empty(len(self.data), np.bool_)
        self._macs += len(self.places) * run.original.macs
        for fold in self.folds:
            model = run.original.copy()
            others = self.data.subset(np.setdiff1d(np.arange(len(self.data)), fold))
            for phase in phases:
                self._macs += phase.run(model, others).macs
            scores = run.score(model, self.data.subset(fold))
            losses[fold], correct[fold] = scores.losses, scores.correct
        return ImageScores(losses[self.places], correct[self.places])


class HeadStart(Observer):
    """Keeps the head that the solved one was held to, to solve it again from there."""

    arrays = ("head_start_weights", "head_start_bias", "head_start_scales")

    def __init__(self) -> None:
        self._start: dict[str, Array] = {}  # the head before it was solved
        self._tried: dict[str, Array] = {}

    def before_phase(self, run: Run, phase: Phase) -> None:
        """Take the head in before it is solved."""
        if phase.name in HEADS:
            head = head_op(run.model)
            core = run.model.core
            found = (core.weights(head), core.bias(head), core.weight_scales(head))
            self._tried = dict(zip(HeadStart.arrays, map(np.array, found), strict=True))

    def after_state(self, run: Run, state: State) -> None:
        """Keep the head that the solved one was held to, if that is not dropped."""
        if state.name in HEADS and state.better is not False:
            self._start = self._tried

    def solve_again(self, run: Run, data: Dataset) -> int:
        """Solve the head of the run's model again, as strongly; return the multiply-accumulates."""
        if self._start:
            weights, bias, scales = (self._start[name] for name in HeadStart.arrays)
            run.model.core.set_parameters(head_op(run.model), weights, bias)
            run.model.core.set_weight_scales(head_op(run.model), scales)
        strength = solved_heads(run)[-1]["head_strength"]
        return run.trainer.preparation.solve_head(run.model, data, strength).macs

    def state(self) -> dict[str, Array]:
        """Return the head that was taken in."""
        return dict(self._start)

    def load_state(self, state: Arrays) -> None:
        """Restore the head that was taken in."""
        self._start = {name: state[name] for name in HeadStart.arrays if name in state}


def solved_heads(run: Run) -> list[StateRecord]:
    """Return the records of the phases that solved the head to its good."""
    phases = [r for r in run.history.phases if r.get("phase") in HEADS]
    return cast("list[StateRecord]", [r for r in phases if r.get("best", True)])


class Refit(Observer):
    """Solves the head alone once more in the best state, now on the held-out images too.

    These are no longer needed for the choice, and a head gains by every image. It is held to the
    same old head as the first time, as strongly. Where solving the head did no good, it stays.
    """

    def end(self, run: Run) -> None:
        """Solve the head once."""
        if not solved_heads(run) or run.history.refit is not None:
            return
        start = time.monotonic()
        run.go_back()
        # A run that was killed after the model was written has the head already: it gets the same.
        macs = run.head_start.solve_again(run, run.images.data)
        seconds = time.monotonic() - start
        refit = {
            "kind": "refit",
            "phase": "refit",
            "step": run.step - 1,
            **figures_of(run.scores("valid")),
            **run.history.totals(seconds, macs),
        }
        run.store.keep(run, refit=True)
        run.record(refit)
        run.tell(PhaseEnd(run.step, run.schedule.steps, refit))


class CrossFit(Observer):
    """Solves the head anew for each half of an epoch, on the images of the other half.

    A head that fits its own images leaves them hardly a loss, and the layers before it nothing to
    learn. By a head that has not seen them, their loss is that of new images. Copies and images of
    a group count as seen together. A state has its head solved on all training images.
    """

    arrays = ("cross_fit",)

    def __init__(self, option: str, schedule: Schedule, data: Dataset) -> None:
        if schedule.steps_per_epoch < 2 and option == "always":
            raise ValueError(
                f"cross_fit='always' takes the halves of an epoch in turn: batch="
                f"{schedule.options.batch} leaves one step for "
                f"{counted(schedule.samples, 'training image')}; use a smaller batch, or "
                "cross_fit='never'"
            )
        self._units = units_of(data) if option == "always" else np.empty(0, np.int64)
        if option == "always" and _least_apart(schedule, self._units) < 1:
            raise ValueError(
                f"cross_fit='always' solves heads on images apart from those of half an epoch: of "
                f"{counted(schedule.samples, 'training image')} one group, or copies of an image, "
                "are more than such a half; use cross_fit='never', or smaller groups"
            )
        self._is_automatic = option == "auto"
        self.is_on = False  # whether the steps go by such heads
        self._macs, self._seconds = 0, 0.0  # of the work that no state has yet
        self._last = (-1, 0)  # steps before the last head, and whether that was a state's

    def plan(self, run: Run) -> None:
        """Plan the steps once the preparation has ended: whether they go by such heads."""
        if not solved_heads(run):
            return
        if self._is_automatic:
            work = head_macs(run.model, len(run.data))
            if not self._is_worth(run, work):
                return
            self._units = units_of(run.data)
            # A group may be so large that hardly an image is left to solve a head on.
            if 4 * _least_apart(run.schedule, self._units) < len(run.data):
                return
            run.schedule.spend_on_heads(work)
        self.is_on = True
        run.schedule.keep_together(self._units, run.data)

    def _is_worth(self, run: Run, work: int) -> bool:
        """Whether the head hides the loss of its images, enough of them for whole epochs."""
        epoch = run.schedule.steps_per_epoch
        if len(run.data) < ENOUGH_IMAGES or epoch < 2:
            return False
        if run.schedule.steps_with_heads(work) < epoch:
            return False
        solved = solved_heads(run)[-1]
        others = solved.get("head_out_of_fold_loss")
        return others is not None and solved["head_loss"] < FITS_ITS_OWN * others

    def before_step(self, run: Run) -> None:
        """Solve the head for the half that begins with this step."""
        place = run.step % run.schedule.steps_per_epoch
        if not self.is_on or place not in (0, run.schedule.half):
            return
        end = run.schedule.half if place == 0 else run.schedule.steps_per_epoch
        own = np.concatenate([run.schedule.indices(run.step + i) for i in range(end - place)])
        apart = ~np.isin(self._units, self._units[own])
        self._solve(run, np.flatnonzero(apart), (run.step, 0))

    def before_state(self, run: Run) -> None:
        """Solve the head on all training images."""
        if self.is_on:
            self._solve(run, np.arange(len(run.data)), (run.step, 1))

    def _solve(self, run: Run, images: Int64Array, place: tuple[int, int]) -> None:
        """Solve the head, unless an interrupted run had done so at this place."""
        if place == self._last:
            return
        start = time.monotonic()
        self._macs += run.head_start.solve_again(run, run.data.subset(images))
        run.renew_stepper()
        self._last = place
        self._seconds += time.monotonic() - start

    def judge(self, run: Run, state: State) -> None:
        """Count the work that led to a state."""
        state.seconds += self._seconds
        state.macs += self._macs
        self._seconds, self._macs = 0.0, 0

    def state(self) -> dict[str, Array]:
        """Return the work of no state yet, and the last head's place."""
        return {"cross_fit": np.array([self._macs, *self._last])} if self.is_on else {}

    def load_state(self, state: Arrays) -> None:
        """Restore the work and the place that :meth:`state` returned."""
        if "cross_fit" in state:
            self._macs, *last = (int(value) for value in state["cross_fit"])
            self._last = (last[0], last[1])


def _least_apart(schedule: Schedule, units: Int64Array) -> int:
    """Return the least images that no half of an epoch has seen, in any order of the units."""
    first = schedule.half * schedule.options.batch
    cut = int(np.bincount(units).max()) - 1  # images of the unit that lies on both sides
    return min(first, schedule.samples - first) - cut


def may_choose_cross_fit(trainer: Trainer, model: Model, images: int) -> bool:
    """Whether a run on this many training images may choose cross-fitted heads."""
    return trainer.cross_fitting(model) == "auto" and images >= ENOUGH_IMAGES


def note_on_cross_fit(run: Run) -> list[str]:
    """Return, as one line or none, that the steps went by such heads, or why not though asked."""
    option = getattr(run.trainer.options, "cross_fit", "never")
    if run.goes_by_cross_fitted_heads:
        return [_ON_CROSS_FIT] if option == "auto" and run.step else []
    if option != "always":
        return []
    if not run.trainer.preparation.trains_head(run.model):
        why = "no head is solved"
    elif run.cross_fit is None:
        why = "only the head is trained"
    else:
        why = "the head that was solved was not kept"
    return [f"cross_fit had no effect: {why}"]
