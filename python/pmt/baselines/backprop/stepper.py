"""Steps of back-propagation: gradients through torch, the update in whole steps or real numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt.baselines.backprop.descent import Descent
from pmt.baselines.backprop.float_network import FloatNetwork
from pmt.baselines.backprop.integer_network import IntegerNetwork
from pmt.baselines.backprop.options import BackpropOptions
from pmt.baselines.backprop.scheme import UpdateScheme
from pmt.baselines.backprop.torch_package import tensor_of, torch
from pmt.datasets import Dataset
from pmt.model import ImageScores, Model, scores_of_logits
from pmt.train.stepper import Stepper, batch_figures

__all__ = ["BackpropStepper"]

_IMAGES_AT_ONCE = 50  # bounds the memory of kept activations; their gradients add up


class BackpropStepper(Stepper):
    """Takes the steps of a run with back-propagation; 0 threads leaves torch's as they are."""

    def __init__(
        self, model: Model, scheme: UpdateScheme, options: BackpropOptions, threads: int
    ) -> None:
        self.model = model
        self.scheme = scheme
        self.threads = threads
        self.floats = options.arithmetic == "float32"
        self.network: Any = (FloatNetwork if self.floats else IntegerNetwork)(model)
        self.network.requires_grad_(False)
        for update in scheme.layers:
            self.network.weights[str(update.op)].requires_grad_(update.channels > 0)
            self.network.biases[str(update.op)].requires_grad_(update.bias)
        self.descent = Descent(self.network, model.to_graph(), scheme, options)

    def step(
        self,
        images: npt.NDArray[np.int8],
        labels: npt.NDArray[np.int64],
        step: int,
        learning_rate: float,
    ) -> dict[str, Any]:
        """Take one step; see :meth:`pmt.train.stepper.Stepper.step`."""
        with _torch_threads(self.threads):
            logits = self._gradients(images, labels)
        losses, correct = _core.cross_entropy(logits, labels)
        self.steps_taken += 1
        self.descent.update(step, learning_rate)
        return {**batch_figures(losses, correct), "changed": self._write_back()}

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return momentum, and shadow or float parameters."""
        return self.descent.state()

    def load_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore a state of :meth:`state`."""
        self.descent.load_state(state)

    def score_images(self, model: Model, data: Dataset, threads: int) -> ImageScores:
        """Measure the network that is trained: the int8 model, or the float network."""
        if not self.floats:
            return super().score_images(model, data, threads)
        parts = [
            self._float_logits(model.prepare(data.images[first : first + _IMAGES_AT_ONCE]))
            for first in range(0, len(data), _IMAGES_AT_ONCE)
        ]
        return scores_of_logits(np.concatenate(parts), data.labels)

    def _gradients(
        self, images: npt.NDArray[np.int8], labels: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float32]:
        """Add up the gradients of the mean loss; return the logits."""
        found = []
        for first in range(0, len(images), _IMAGES_AT_ONCE):
            chunk = slice(first, first + _IMAGES_AT_ONCE)
            logits = self.network(tensor_of(images[chunk]))
            loss = torch.nn.functional.cross_entropy(
                logits, tensor_of(labels[chunk]), reduction="sum"
            )
            (loss / len(images)).backward()
            found.append(logits.detach().numpy())
        return np.concatenate(found)

    def _float_logits(self, images: npt.NDArray[np.int8]) -> npt.NDArray[np.float32]:
        with _torch_threads(self.threads), torch.no_grad():
            logits: npt.NDArray[np.float32] = self.network(tensor_of(images)).numpy()
        return logits

    def _write_back(self) -> int:
        """Give the model the parameters; return how many int8 weights changed."""
        changed = 0
        for update in self.scheme.layers:
            weights, bias = self.network.parameters_as_integers(update.op)
            old = self.model.core.weights(update.op)
            changed += int((weights.reshape(old.shape) != old).sum())
            self.model.core.set_parameters(update.op, weights.reshape(old.shape), bias)
        return changed


@contextmanager
def _torch_threads(threads: int) -> Iterator[None]:
    before = torch.get_num_threads()
    try:
        if threads > 0:
            torch.set_num_threads(threads)
        yield
    finally:
        torch.set_num_threads(before)
