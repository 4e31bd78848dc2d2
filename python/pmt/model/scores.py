"""Losses and predictions of every image, and their means."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt._util.counted import counted

__all__ = ["Evaluation", "ImageScores", "scores_of_logits"]


@dataclass(frozen=True)
class Evaluation:
    """Accuracy (0..1) and mean cross-entropy loss (nats) over ``n`` images."""

    accuracy: float
    loss: float
    n: int

    def __str__(self) -> str:
        return f"accuracy {self.accuracy:.3f}, loss {self.loss:.4f}, {counted(self.n, 'image')}"


@dataclass(frozen=True)
class ImageScores:
    """Scores of every image: two models are compared on the same images, pair by pair.

    Attributes
    ----------
    losses : ndarray of float64, shape (N,)
        Cross-entropy in nats, multiples of 2^-20.
    correct : ndarray of bool, shape (N,)
        Whether the largest logit is the label's.
    predicted : ndarray of int64, shape (N,)
        The class of the largest logit, the lower one of equals; empty where it is not known.
    """

    losses: npt.NDArray[np.float64]
    correct: npt.NDArray[np.bool_]
    predicted: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def evaluation(self) -> Evaluation:
        """Their means, as :meth:`pmt.Model.evaluate` gives them."""
        n = len(self.losses)
        return Evaluation(int(self.correct.sum()) / n, float(self.losses.sum()) / n, n)


def scores_of_logits(logits: npt.NDArray[np.float32], labels: npt.NDArray[np.int64]) -> ImageScores:
    """Score logits (N, classes) against labels (N,)."""
    labels = np.ascontiguousarray(labels)
    losses, _ = _core.cross_entropy(logits, labels)
    predicted = logits.argmax(axis=1)
    return ImageScores(losses / float(_core.LOSS_ONE), predicted == labels, predicted)
