"""What a training run needs of a trainer: steps, and what to save between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt.datasets import Dataset
from pmt.model import Evaluation, Model

__all__ = ["Stepper", "batch_figures"]


def batch_figures(losses: npt.NDArray[np.int32], correct: int) -> dict[str, Any]:
    """Return what a step says of its batch: ``loss``, ``loss_sum`` and ``correct``.

    Parameters
    ----------
    losses : ndarray of int32, shape (N,)
        One an image, in units of 2**-20 nats.
    correct : int
        Images whose class was found.
    """
    loss_sum = int(losses.sum(dtype=np.int64))
    loss = loss_sum / _core.LOSS_ONE / len(losses)
    return {"loss": loss, "loss_sum": loss_sum, "correct": correct}


class Stepper(ABC):
    """Takes the steps of one run on one model, whose weights it changes in place.

    Attributes
    ----------
    steps_taken : int
        Steps whose update the model holds, counted from where this object began. Counted up before
        the update begins: a step that is interrupted in the middle of its update then counts, the
        run sees that it never returned, and does not save what it left.
    """

    steps_taken: int = 0

    @abstractmethod
    def step(
        self,
        images: npt.NDArray[np.int8],
        labels: npt.NDArray[np.int64],
        step: int,
        learning_rate: float,
    ) -> dict[str, Any]:
        """Take one step.

        Parameters
        ----------
        images : ndarray of int8, shape (batch, height, width, channels)
            The model's input, as of :meth:`pmt.Model.prepare`.
        labels : ndarray of int64, shape (batch,)
            Classes.
        step : int
            Number of the step, from 0; whatever is random is a function of it and the seed.
        learning_rate : float
            Of this step.

        Returns
        -------
        dict
            For the metrics: ``loss`` (mean over the batch, nats) and ``correct`` (images),
            both from before the update, ``changed`` (weights that it changed); ``loss_sum``, if
            there is one, is the exact sum in units of 2**-20 nats; ``forwards`` and ``macs``, if
            they are there, are what this step took, where steps differ.
        """

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what the next step needs besides the model's bytes, as arrays by name.

        They are saved with each checkpoint. No array of objects.
        """
        return {}

    def load_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from what :meth:`state` returned.

        Raises
        ------
        ValueError
            If an array is missing or has another shape.
        """
        if state:
            raise ValueError(f"{', '.join(sorted(state))}: not a state of this trainer")

    def describe(self) -> dict[str, Any]:
        """Return what an epoch's record says about the settings now in force."""
        return {}

    def evaluate(self, model: Model, data: Dataset, threads: int) -> Evaluation:
        """Measure the trained network; by default the int8 model itself."""
        return model.evaluate(data, threads=threads)
