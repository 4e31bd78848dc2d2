"""The best state of a run: the choice among its phases and epochs, on images held out of training.

The original model is one of the states. Another one replaces it only if it is better by more than
two standard errors, so that training does not make a good model worse by chance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt._util.arrays import Array, Int64Array
from pmt._util.text import counted, listed
from pmt.datasets import Dataset
from pmt.model import ImageScores
from pmt.protocol.comparison import is_worse, whole_losses
from pmt.protocol.stratification import (
    FEWEST_OF_CLASS,
    first_of_copies,
    hold_out,
    stratified_order,
    units_of,
)
from pmt.train.losses import BINARY
from pmt.train.option_fields import Range, option
from pmt.train.run.observers import Arrays, Observer, State

if TYPE_CHECKING:
    from pmt.train.run.loop import Run
    from pmt.train.trainer import Trainer

# With fewer held-out images chance would choose.
FEWEST: int = _core.FEWEST_HELD_OUT
# With fewer held out of the training images, cross-validation on all of these judges the head.
FEW: int = _core.FEW_HELD_OUT
# Standard errors by which a state must be better than the original model. A head held to the old
# one is better by one of them by chance, and so is, on few images, an epoch by two.
ERRORS: int = _core.STATE_ERRORS
FEW_ERRORS: int = _core.FEW_STATE_ERRORS
# Standard errors by which a state must be worse than the best one to be reverted; more than one
# where that is an epoch. The best of several epochs looks better than it is: by one standard error,
# long runs cut their rate until no weight changed.
WORSE_ERRORS, WORSE_ERRORS_OF_EPOCH = 1, 3
# The options of it.
CHOICE = ("keep_best", "held_out_share")

KEEP_BEST = partial(
    option,
    help="hold images out of training, and end with the state of the run that is best on them: "
    "the original model, the prepared one, or the state after an epoch; a state that is worse by "
    "more than a standard error (than an epoch: three) is reverted, after an epoch with a third of "
    "the learning rate",
)
HELD_OUT_SHARE = partial(
    option,
    metavar="X",
    help="share of the training images that {keep_best} holds out",
    values=Range(0.0, 0.9, low_open=True, why="a share of the training images"),
)


def cut_rate(rate: float, reverted: int) -> float:
    """Return a learning rate after epochs that were reverted: a third for each."""
    return float(f"{rate / 3**reverted:.6g}") if reverted else rate


def held_out_count(options: object, samples: int) -> int:
    """Return how many of a number of training images a run would hold out."""
    if not getattr(options, "keep_best", False):
        return 0
    share: float = getattr(options, "held_out_share", 0.0)
    count = round(share * samples)
    return count if count >= FEWEST else 0


def held_out_indices(options: Any, data: Dataset) -> Int64Array:
    """Return the images that a run holds out, ascending; None if few, or without class labels."""
    data = _with_labels(options, data)
    count = held_out_count(options, len(data)) if data.has_class_labels else 0
    found = _chosen(data, count, options.seed) if count else np.empty(0, np.int64)
    return found if len(found) >= FEWEST else found[:0]


def _with_labels(options: object, data: Dataset) -> Dataset:
    """Return images whose one target is 0 or 1, trained as a probability, with class labels."""
    one = data.has_targets and data.labels.shape[1] == 1
    if not one or getattr(options, "loss", "") != BINARY or not np.isin(data.labels, (0, 1)).all():
        return data
    return replace(data, labels=data.labels[:, 0].astype(np.int64), class_names=("0", "1"))


def _chosen(data: Dataset, count: int, seed: int) -> Int64Array:
    return hold_out(data.labels, count, stratified_order(data.labels, seed), units_of(data))


@dataclass(frozen=True)
class Images:
    """The images of a run: those that it was given, and the parts that train and choose."""

    data: Dataset
    valid: Dataset | None
    given: Dataset | None  # to choose on
    train: Dataset
    held_out: Dataset | None

    @classmethod
    def of(
        cls, trainer: Trainer, data: Dataset, valid: Dataset | None, given: Dataset | None
    ) -> Images:
        """Hold images out, unless some are given."""
        if given is not None and len(given) < FEWEST:
            raise ValueError(
                f"held_out has {counted(len(given), 'image')}: a choice needs {FEWEST} or more, "
                "better 100; give more, or leave it out, and a share of data is held out"
            )
        if given is not None or not len(chosen := trainer.held_out_indices(data)):
            return cls(data, valid, given, data, given)
        train, held_out = parted(data, chosen)
        held_out = _with_labels(trainer.options, held_out)
        # Copies would make the choice look more certain than it is.
        return cls(data, valid, given, train, held_out.subset(first_of_copies(held_out)))

    @property
    def held_out_was_split_off(self) -> bool:
        """Whether the held-out images are a part of those to train on."""
        return self.train is not self.data


def note_without_choice(data: Dataset, options: object) -> list[str]:
    """Return, as one line or none, why a run that should choose its state holds no image out."""
    if not getattr(options, "keep_best", False):
        return []
    data = _with_labels(options, data)
    why = "the training images have no class labels"
    if data.has_targets:
        why = "targets are trained, and states are compared by class labels"
    if data.has_class_labels:
        few = counted(len(data), "training image is", "training images are")
        why = f"{few} too few to hold some out"
        if held_out_count(options, len(data)):
            why = (
                "hardly an image can be held out, since a class of "
                f"{FEWEST_OF_CLASS - 1} or fewer gives none, and copies stay on one side"
            )
    return [f"no state is chosen: {why}"]


def note_on_rare_classes(data: Dataset, options: object) -> list[str]:
    """Return, as one line or none, which classes have too few images to hold one out."""
    data = _with_labels(options, data)
    counts = np.bincount(data.labels, minlength=len(data.class_names))
    rare = [data.class_names[c] for c in np.flatnonzero((counts > 0) & (counts < FEWEST_OF_CLASS))]
    if not rare:
        return []
    return [
        f"no image is held out of {counted(len(rare), 'class', 'classes')} of "
        f"{FEWEST_OF_CLASS - 1} or fewer ({listed(rare)}): what is chosen says nothing of them"
    ]


def part(data: Dataset, count: int, seed: int) -> tuple[Dataset, Dataset]:
    """Part ``count`` images from the others, of each class its share: both in their old order."""
    return parted(data, _chosen(data, count, seed))


def parted(data: Dataset, chosen: npt.ArrayLike) -> tuple[Dataset, Dataset]:
    """Return the images that are not chosen, and those that are."""
    return data.subset(np.setdiff1d(np.arange(len(data)), chosen)), data.subset(chosen)


class BestState:
    """Scores of the best state so far and of the first one, image by image; None before that."""

    def __init__(self) -> None:
        self.start: ImageScores | None = None
        self.best: ImageScores | None = None

    def is_better(self, scores: ImageScores, errors: int, *, is_alternative: bool = False) -> bool:
        """Whether a state should be kept in place of the best so far.

        Its mean loss must be less than the best state's and, by more than ``errors`` standard
        errors, than the first one's, and its accuracy no lower than the first one's. That of an
        alternative must be less than the best state's by more than one standard error.
        """
        if self.start is None or self.best is None:
            return True
        states = (self.start, self.best, scores)
        correct = (int(state.correct.sum()) for state in states)
        start, best, state = zip(whole_losses(*states), correct, strict=True)
        return _core.is_better(start, best, state, errors, is_alternative)

    def is_worse(self, scores: ImageScores, errors: int) -> bool:
        """Whether a state is worse than the best one by more than ``errors`` standard errors."""
        return self.best is not None and is_worse(scores, self.best, errors)

    def take(self, scores: ImageScores, errors: int, *, is_alternative: bool = False) -> bool:
        """Take a state in, the next one; return whether it is the best so far."""
        better = self.is_better(scores, errors, is_alternative=is_alternative)
        self.add(scores, better)
        return better

    def add(self, scores: ImageScores, better: bool) -> None:
        """Take a state in, of which is known whether it is the best so far."""
        if better:
            self.best = scores
        if self.start is None:
            self.start = scores


class KeepBest(Observer):
    """Judges each state on held-out images; with ``backtrack``, a run leaves a worse one again."""

    arrays = ("held_out_losses", "held_out_correct")

    def __init__(self, backtrack: bool) -> None:
        self.backtrack = backtrack
        self.scored = BestState()

    def judge(self, run: Run, state: State) -> None:
        """Judge a state; of one that is judged already, say only whether it is reverted.

        The few images held out beside a cross-validation could not tell later that its head is no
        better: it is reverted at once.
        """
        scores = state.scores["held_out"]
        if state.better is not None:
            state.worse = self.backtrack and not state.better
        else:
            is_few = state.name == "epoch" and len(scores.losses) < FEW
            errors = FEW_ERRORS if is_few else ERRORS
            best = run.history.best
            of_epoch = best is not None and best["kind"] == "epoch"
            worse_errors = WORSE_ERRORS_OF_EPOCH if of_epoch else WORSE_ERRORS
            state.worse = self.backtrack and self.scored.is_worse(scores, worse_errors)
            state.better = self.scored.is_better(
                scores, errors, is_alternative=state.is_alternative
            )
        # One that began with the original model is dropped by the run itself.
        state.worse &= state.phase is None or not state.phase.from_start
        self.scored.add(scores, state.better)

    def state(self) -> dict[str, Array]:
        """Return the scores of the first and the best state."""
        if self.scored.start is None or self.scored.best is None:
            return {}
        both = (self.scored.start, self.scored.best)
        values = (np.stack([s.losses for s in both]), np.stack([s.correct for s in both]))
        return dict(zip(self.arrays, values, strict=True))

    def load_state(self, state: Arrays) -> None:
        """Restore these scores."""
        if all(name in state for name in self.arrays):
            losses, correct = (state[name] for name in self.arrays)
            both = (ImageScores(losses[i], correct[i]) for i in range(2))
            self.scored.start, self.scored.best = both
