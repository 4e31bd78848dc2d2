"""Cross-validation of the head, which judges it where few images are held out.

A dozen held-out images decide by chance whether a head that some fifty others trained is kept. Each
of ten folds is scored by a model that was prepared on the other nine: all images judge the head.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pmt.datasets import Dataset
from pmt.model import ImageScores, Model
from pmt.protocol.splitting import balanced_order
from pmt.train.prepare.preparation import Phase
from pmt.train.run.keep_best import PHASE_ERRORS, BestState

__all__ = ["FOLDS", "CrossValidation"]

FOLDS = 10


class CrossValidation:
    """The judge of a preparation's head, on all training images.

    Parameters
    ----------
    model : Model
        The original model; it is copied.
    data : Dataset
        All training images, with class labels, those held out too.
    seed : int
        Seed of the folds, which are balanced over the classes.
    score : callable
        Scores a model on images.
    """

    def __init__(
        self, model: Model, data: Dataset, seed: int, score: Callable[[Model, Dataset], ImageScores]
    ) -> None:
        self.model = model.copy()
        self.data = data
        self.score = score
        order = balanced_order(np.asarray(data.labels), seed)
        self.folds = [np.sort(fold) for fold in np.array_split(order, min(FOLDS, len(order)))]
        self.phases: list[Phase] = []  # that the model has gone through
        self.best = BestState()

    def start(self) -> dict[str, float]:
        """Score the original model; return the figures for its record."""
        scores = self.score(self.model, self.data)
        self.best.take(scores, PHASE_ERRORS)
        return _figures(scores)

    def follow(self, phase: Phase, better: bool) -> None:
        """Take in a phase before the head that is in force, and whether it is the best state."""
        self.phases.append(phase)
        if better:
            self.best.add(self._out_of_fold(self.phases), better)

    def judge(self, head: Phase) -> tuple[bool, dict[str, float]]:
        """Return whether the head is better than the best state, and the figures for its record."""
        scores = self._out_of_fold([*self.phases, head])
        return self.best.take(scores, PHASE_ERRORS), _figures(scores)

    def _out_of_fold(self, phases: list[Phase]) -> ImageScores:
        """Return the scores of all images, each by a model prepared without its fold."""
        losses: npt.NDArray[np.float64] = np.empty(len(self.data))
        correct = np.empty(len(self.data), np.bool_)
        for fold in self.folds:
            model = self.model.copy()
            others = self.data.subset(np.setdiff1d(np.arange(len(self.data)), fold))
            for phase in phases:
                phase.run(model, others)
            scores = self.score(model, self.data.subset(fold))
            losses[fold], correct[fold] = scores.losses, scores.correct
        return ImageScores(losses, correct)


def _figures(scores: ImageScores) -> dict[str, float]:
    found = scores.evaluation
    return {"out_of_fold_loss": found.loss, "out_of_fold_accuracy": found.accuracy}
