"""The best state of a run: the choice among its phases and epochs, on images held out of training.

The original model is one of the states. Another one replaces it only if it is better by more than
one standard error, so that training does not make a good model worse by chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt._util.counted import counted
from pmt.datasets import Dataset
from pmt.model import ImageScores
from pmt.protocol.splitting import balanced_order
from pmt.train.option_fields import Range, option

__all__ = [
    "BACKTRACK",
    "CHOICE",
    "EPOCH_ERRORS",
    "FEW",
    "HELD_OUT_SHARE",
    "KEEP_BEST",
    "PHASE_ERRORS",
    "RATE_CUT",
    "BestState",
    "held_out_count",
    "is_worse",
    "note_without_choice",
    "part",
]

# With fewer, chance would choose.
_FEWEST = 4
# With fewer held out of the training images, cross-validation on all of these judges the head.
FEW = 30
# Standard errors by which a state must be better than the original model. Among many epochs the
# best one is better by one of them by chance; phases are few.
PHASE_ERRORS, EPOCH_ERRORS = 1, 2
# The factor of the learning rate after an epoch that was reverted.
RATE_CUT = 1 / 3
# The options of it.
CHOICE = ("keep_best", "held_out_share", "backtrack")
_STATE = ("held_out_losses", "held_out_correct")

KEEP_BEST = partial(
    option,
    help="hold images out of training, and end with the state of the run that is best on them: "
    "the original model, the prepared one, or the state after an epoch",
)
HELD_OUT_SHARE = partial(
    option,
    metavar="X",
    help="share of the training images that {keep_best} holds out",
    values=Range(0.0, 0.9, low_open=True, why="a share of the training images"),
)
BACKTRACK = partial(
    option,
    help="with {keep_best}, revert to the best state if the current one is worse by more than a "
    "standard error; after an epoch, with a third of the learning rate",
)


def held_out_count(options: object, samples: int) -> int:
    """Return how many of so many training images a run holds out."""
    if not getattr(options, "keep_best", False):
        return 0
    share: float = getattr(options, "held_out_share", 0.0)
    count = round(share * samples)
    return count if count >= _FEWEST else 0


def note_without_choice(data: Dataset, options: object) -> list[str]:
    """Return, as one line or none, why a run that should choose its state holds no image out."""
    if not getattr(options, "keep_best", False):
        return []
    why = "the training images have no class labels"
    if data.has_class_labels:
        why = f"{counted(len(data), 'training image')} are too few to hold some out"
    return [f"no state is chosen: {why}"]


def part(data: Dataset, count: int, seed: int) -> tuple[Dataset, Dataset]:
    """Part ``count`` images from the others, balanced over the classes.

    Returns
    -------
    (Dataset, Dataset)
        The others, and those held out, each in the order that they had.
    """
    order = balanced_order(np.asarray(data.labels), seed)
    return data.subset(np.sort(order[count:])), data.subset(np.sort(order[:count]))


def is_worse(scores: ImageScores, than: ImageScores, errors: int = 1) -> bool:
    """Whether the mean loss is higher by more than so many standard errors.

    The standard error is that of the differences, image by image. With sums S of them and Q of
    their squares, S > 0 and S^2 / n^2 > z^2 (Q - S^2 / n) / (n (n - 1)) is
    S^2 (n - 1 + z^2) > z^2 n Q: exact on integers.
    """
    differences = _fixed(scores) - _fixed(than)
    n, total = len(differences), int(differences.sum())
    squares = sum(int(d) * int(d) for d in differences)
    return total > 0 and total * total * (n - 1 + errors**2) > errors**2 * n * squares


class BestState:
    """Scores of the best state so far and of the first one, image by image.

    Attributes
    ----------
    start, best : ImageScores or None
        None before the first state.
    """

    def __init__(self) -> None:
        self.start: ImageScores | None = None
        self.best: ImageScores | None = None

    def is_better(self, scores: ImageScores, errors: int) -> bool:
        """Whether a state should be kept in place of the best so far.

        Its mean loss must be less than the best state's and, by more than so many standard errors,
        than the first one's, and its accuracy no lower than the first one's.
        """
        if self.start is None or self.best is None:
            return True
        less = int(_fixed(scores).sum()) < int(_fixed(self.best).sum())
        accurate = int(scores.correct.sum()) >= int(self.start.correct.sum())
        return less and accurate and is_worse(self.start, scores, errors)

    def is_worse(self, scores: ImageScores) -> bool:
        """Whether a state is worse than the best one by more than one standard error."""
        return self.best is not None and is_worse(scores, self.best)

    def take(self, scores: ImageScores, errors: int) -> bool:
        """Take a state in, the next one; return whether it is the best so far."""
        better = self.is_better(scores, errors)
        self.add(scores, better)
        return better

    def add(self, scores: ImageScores, better: bool) -> None:
        """Take a state in, of which is known whether it is the best so far."""
        if better:
            self.best = scores
        if self.start is None:
            self.start = scores

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that a checkpoint holds."""
        if self.start is None or self.best is None:
            return {}
        both = (self.start, self.best)
        values = (np.stack([s.losses for s in both]), np.stack([s.correct for s in both]))
        return dict(zip(_STATE, values, strict=True))

    def load_state(self, state: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """Restore what :meth:`state` returned; return the other arrays."""
        if all(name in state for name in _STATE):
            losses, correct = (state[name] for name in _STATE)
            self.start, self.best = (ImageScores(losses[i], correct[i]) for i in range(2))
        return {name: array for name, array in state.items() if name not in _STATE}


def _fixed(scores: ImageScores) -> npt.NDArray[np.int64]:
    """Return the losses as the whole numbers of 2^-20 that they are."""
    return np.rint(scores.losses * float(_core.LOSS_ONE)).astype(np.int64)
