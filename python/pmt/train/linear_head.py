"""The linear head trained alone, on features that are computed once.

What the last layer sees does not depend on it: one forward an image gives its features, and as many
passes over them as one likes cost next to nothing. The gradient is exact, that of softmax
regression. A network whose head fits its features is trained from a better start: linear probing,
then fine-tuning (Kumar et al. 2022, arXiv:2202.10054).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pmt import _core
from pmt.datasets import Dataset
from pmt.model import Model
from pmt.net.graph import graph_of_activations
from pmt.train.costs.work import zeroth_order_work
from pmt.train.schedule import Schedule

__all__ = ["HeadTraining"]

_BATCH = 50
_AT_ONCE = 1 << 22  # bytes of images whose features are computed, so that copies stay small


@dataclass(frozen=True)
class _Epochs:
    """Options of the schedule."""

    epochs: int
    batch: int
    learning_rate: float
    seed: int
    layers: str = "head"
    macs: int = 0
    final_learning_rate: float = 0.1
    warmup_epochs: int = 0


@dataclass(frozen=True)
class HeadTraining:
    """Training of the head alone: the same steps, whatever trains the other layers afterwards.

    Attributes
    ----------
    epochs : int
        Passes over the features.
    learning_rate : float
        Root mean square of the first update, in weight steps; the last one's is a tenth of it.
    seed : int
        Seed of the order of images and of stochastic rounding.
    """

    epochs: int
    learning_rate: float
    seed: int

    def fits(self, model: Model) -> bool:
        """Whether the model's last layer is linear, so that its gradient is exact."""
        last = model.core.op_count - 1
        if last not in [layer.index for layer in model.layers]:
            return False
        (head,) = _core.Trainer(model.core, self._core_options(), [last], 1, 1).layers()
        return bool(head["estimator"] == "closed_form")

    def macs(self, model: Model, images: int) -> int:
        """Count MACs: a forward an image up to the head, then the head alone in every epoch."""
        macs = [int(op["macs"]) for op in model.core.ops()]
        schedule = self._schedule(images)
        batch = schedule.options.batch
        step = zeroth_order_work(_head_alone(model).core, self._core_options(), [0]).cost(batch)
        return images * sum(macs[:-1]) + schedule.steps * step.macs

    def run(self, model: Model, data: Dataset, *, threads: int = 0) -> None:
        """Train the head of a model in place; no other layer changes.

        The result does not depend on the threads. Ctrl-C leaves the model as it was.
        """
        schedule = self._schedule(len(data))
        last = model.core.op_count - 1
        rows = max(1, _AT_ONCE // data.images[:1].nbytes)
        parts = [data.images[first : first + rows] for first in range(0, len(data), rows)]
        found = [model.core.inputs(model.prepare(part), last, threads) for part in parts]
        features = found[0] if len(found) == 1 else np.concatenate(found)
        labels = np.ascontiguousarray(data.labels, np.int64)
        head = _head_alone(model).core
        batch = schedule.options.batch
        trainer = _core.Trainer(head, self._core_options(), [0], batch, threads)
        for step in range(schedule.steps):
            chosen = schedule.indices(step)
            trainer.step(features[chosen], labels[chosen], step, schedule.learning_rate(step))
        model.core.set_parameters(last, head.weights(0), head.bias(0))

    def _schedule(self, images: int) -> Schedule:
        batch = min(_BATCH, images)
        return Schedule(_Epochs(self.epochs, batch, self.learning_rate, self.seed), images)

    def _core_options(self) -> _core.Options:
        options = _core.Options()
        options.seed = self.seed
        options.step = "normalised"
        options.rounding = "stochastic"
        return options


def _head_alone(model: Model) -> Model:
    """Return a model of the last op, whose input is its features."""
    graph = model.to_graph()
    head = graph.ops[-1]
    tensors = [graph.tensors[head.inputs[0]], graph.tensors[head.output]]
    return Model.from_graph(graph_of_activations(tensors, [replace(head, inputs=(0,), output=1)]))
