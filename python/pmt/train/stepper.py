"""Steppers: the interface of a training run to its trainer, and the core's trainer behind it."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pmt import _core
from pmt._util.arrays import Array, Int8Array, Int32Array, Int64Array
from pmt.datasets import Dataset
from pmt.datasets.arrays import has_labels
from pmt.model import ImageScores, Model
from pmt.model.scores import raw_logits, scores_of_logits
from pmt.train.losses import is_function, reads_labels
from pmt.train.options import TrainingOptions

__all__ = ["CoreStepper", "Stepper", "batch_figures"]

_LARGEST_LOSS = 1024  # of a callable
_STACK = 7  # of a warning: the caller of fit


def batch_figures(losses: Int32Array, correct: int) -> dict[str, Any]:
    """Return a step's record of its batch, from losses in units of 2**-20 nats, one per image."""
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
        self, images: Int8Array, labels: Int64Array, step: int, learning_rate: float
    ) -> dict[str, Any]:
        """Take one step.

        Parameters
        ----------
        images : ndarray of int8, shape (batch, height, width, channels)
            The model's input, as :meth:`pmt.Model.prepare` returns it.
        labels : ndarray of int64, shape (batch,)
            Classes, -1 where there are none; or targets, see :class:`pmt.datasets.Dataset`.
        step : int
            Number of the step, from 0; whatever is random is a function of it and the seed.
        learning_rate : float
            Learning rate of this step.

        Returns
        -------
        dict
            For the metrics: ``loss`` (mean over the batch) and ``correct`` (images; not where
            there are no labels), both from before the update, ``changed`` (weights that it
            changed); ``loss_sum``, if there is one, is the exact sum in units of 2**-20;
            ``forwards`` and ``macs``, if they are there, are what this step took, where steps
            differ.
        """

    def state(self) -> dict[str, Array]:
        """Return the arrays, by name, that the next step needs besides the model's bytes.

        They are saved with each checkpoint. No array of objects.
        """
        return {}

    def load_state(self, state: Mapping[str, Array]) -> None:
        """Restore a state of :meth:`state`.

        Raises
        ------
        ValueError
            If an array is missing or has another shape.
        """
        if state:
            raise ValueError(f"{', '.join(sorted(state))}: not a state of this trainer")

    def go_on_from(self, earlier: Any, *, momentum: bool = True) -> None:
        """Go on from an earlier stepper of the same class and process."""
        self.load_state(earlier.state() if momentum else earlier.state_without_momentum())

    def state_without_momentum(self) -> dict[str, Array]:
        """Return the state without momentum."""
        return self.state()

    def score_images(self, model: Model, data: Dataset, threads: int) -> ImageScores:
        """Measure the trained network; by default the int8 model itself."""
        return scores_of_logits(raw_logits(model.core, data.images, threads), data.labels)

    def score_by_loss(self, model: Model, data: Dataset, threads: int) -> ImageScores:
        """Measure the network by the loss that is trained, for the choice among a run's states.

        By default that is the cross-entropy of :meth:`score_images`.
        """
        return self.score_images(model, data, threads)


class CoreStepper(Stepper):
    """Steps of the core's trainer; Ctrl-C cancels one before it has changed a weight."""

    def __init__(self, core: _core.Trainer, options: TrainingOptions, model: Model) -> None:
        self.core = core
        self.options = options
        self.model = model
        self._warned = False

    def step(
        self, images: Int8Array, labels: Int64Array, step: int, learning_rate: float
    ) -> dict[str, Any]:
        """Take one step, see :meth:`pmt.train.stepper.Stepper.step`."""
        try:
            figures = self.core.step(images, labels, step, learning_rate)
            if labels.ndim == 2 or not (has_labels(labels) and self.model.is_classifier):
                del figures["correct"]
            self._warn_of_saturation(figures["loss"])
            return figures
        finally:
            self.steps_taken = self.core.steps_begun

    def _warn_of_saturation(self, loss: float) -> None:
        """Warn once where a callable's losses are all cut off, and teach nothing."""
        if is_function(self.options.loss) and abs(loss) >= _LARGEST_LOSS and not self._warned:
            self._warned = True
            warnings.warn(
                f"every loss of a step is beyond -{_LARGEST_LOSS} to {_LARGEST_LOSS}, which is "
                f"what counts: nothing is learned from it; let {self.options.loss} return a "
                "smaller multiple",
                stacklevel=_STACK,
            )

    def score_by_loss(self, model: Model, data: Dataset, threads: int) -> ImageScores:
        """Measure by the options' loss; by cross-entropy where that is `entropy`.

        Entropy sees no collapse: it is least where all images are of one class.
        """
        if self.options.loss == "cross_entropy" or not reads_labels(self.options.loss):
            return super().score_by_loss(model, data, threads)
        logits, labels = raw_logits(model.core, data.images, threads), np.asarray(data.labels)
        losses = self.core.losses(logits, np.ascontiguousarray(labels, np.int64))
        scores = scores_of_logits(logits, labels)
        return replace(scores, losses=losses / float(_core.LOSS_ONE))

    def state(self) -> dict[str, Array]:
        """Return -log of the mean prediction, where the loss looks at it."""
        values = self.core.surprisal()
        return {"surprisal": values} if values.size else {}

    def state_without_momentum(self) -> dict[str, Array]:
        """Return the state as it is before the first step."""
        return {name: np.zeros_like(values) for name, values in self.state().items()}

    def load_state(self, state: Mapping[str, Array]) -> None:
        """Restore a state of :meth:`state`."""
        wanted = sorted(self.state())
        if sorted(state) != wanted:
            raise ValueError(f"state {sorted(state)} must be {wanted}")
        if "surprisal" in state:
            self.core.restore_surprisal(state["surprisal"])
