"""Whether a run that keeps no best state ends worse than it began, on the images to watch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.model import ImageScores
from pmt.train.run.keep_best import is_worse

__all__ = ["Divergence"]

_STATE = ("watched_losses", "watched_correct")


class Divergence:
    """First and last scores of a run on the images to watch.

    Attributes
    ----------
    first, last : ImageScores or None
        None before they are measured. The first are in the checkpoints of a run.
    """

    def __init__(self) -> None:
        self.first: ImageScores | None = None
        self.last: ImageScores | None = None

    def add(self, scores: ImageScores) -> None:
        """Take the scores of a state in, the next one."""
        if self.first is None:
            self.first = scores
        self.last = scores

    def found(self) -> str:
        """Return by what the last scores are worse; empty where they are not, or not clearly.

        They are worse with a lower accuracy, and a loss higher by more than one standard error.
        """
        if self.first is None or self.last is None:
            return ""
        before, after = self.first.evaluation, self.last.evaluation
        if not is_worse(self.last, self.first) or after.accuracy >= before.accuracy:
            return ""
        return (
            f"accuracy {before.accuracy:.4f} -> {after.accuracy:.4f}, loss {before.loss:.4f} -> "
            f"{after.loss:.4f} on the {after.n:,} images that are watched"
        )

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that a checkpoint holds."""
        if self.first is None:
            return {}
        return dict(zip(_STATE, (self.first.losses, self.first.correct), strict=True))

    def load_state(self, state: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """Restore what :meth:`state` returned; return the other arrays."""
        if all(name in state for name in _STATE):
            losses, correct = (state[name] for name in _STATE)
            self.first = ImageScores(np.asarray(losses), np.asarray(correct))
        return {name: array for name, array in state.items() if name not in _STATE}
