"""The linear head trained alone, on features that are computed once.

What the last layer sees does not depend on it: one forward an image gives its features, and as many
passes over them as one likes cost next to nothing. The gradient is exact, that of softmax
regression. A network whose head fits its features is trained from a better start: linear probing,
then fine-tuning (Kumar et al. 2022, arXiv:2202.10054).

Few passes are enough for a head that is right but for a shift of the images, and more would fit
their noise; a head for other classes needs many. Cross-validation on the features decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt.datasets import Dataset
from pmt.model import ImageScores, Model, scores_of_logits
from pmt.net.graph import graph_of_activations
from pmt.protocol.comparison import is_worse
from pmt.protocol.copies import units_of
from pmt.protocol.stratification import folds
from pmt.train.costs.work import zeroth_order_work
from pmt.train.schedule import Schedule

__all__ = ["LONGER", "HeadTraining", "HeadWork", "head_op"]

LONGER = (3, 10)  # times the passes, tried in turn while they lower the loss
_FOLDS = 3
_BATCH = 50
_THREADS = 1  # for steps of a layer so small that threads wait for each other
_Labels = npt.NDArray[np.int64]
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


@dataclass(frozen=True)
class HeadWork:
    """The work of training a head alone.

    Attributes
    ----------
    epochs : int
        Passes over the features that the head has seen.
    macs : int
        Multiply-accumulates of the features and of these passes.
    choice_macs : int
        Those of the passes that cross-validation took to choose how many.
    """

    epochs: int
    macs: int
    choice_macs: int


@dataclass(frozen=True)
class HeadTraining:
    """Training of the head alone: the same steps, whatever trains the other layers afterwards.

    Attributes
    ----------
    epochs : int
        Passes over the features, at least; :data:`LONGER` times as many where they lower the
        cross-validated loss by more than its standard error.
    learning_rate : float
        Root mean square of the first update, in weight steps; the last one's is a tenth of it.
    seed : int
        Seed of the order of images, of the folds and of stochastic rounding.
    """

    epochs: int
    learning_rate: float
    seed: int

    def fits(self, model: Model) -> bool:
        """Whether the model has a linear head, whose gradient is exact."""
        if head_op(model) not in [layer.index for layer in model.layers]:
            return False
        alone = _head_alone(model)
        (head,) = _core.Trainer(alone.core, _core_options(self.seed), [0], 1, 1).layers()
        return bool(head["estimator"] == "closed_form")

    def macs(self, model: Model, images: int) -> int:
        """Count the least MACs: a forward an image up to the head, then the head in every pass."""
        before = model.core.ops()[: head_op(model)]
        features = images * sum(int(op["macs"]) for op in before)
        return features + self._pass_macs(_head_alone(model), self.epochs, images)

    def _pass_macs(self, head: Model, epochs: int, images: int) -> int:
        schedule = self._schedule(epochs, images)
        step = zeroth_order_work(head.core, _core_options(self.seed), [0])
        return schedule.steps * step.cost(schedule.options.batch).macs

    def run(
        self, model: Model, data: Dataset, *, threads: int = 0, epochs: int | None = None
    ) -> HeadWork:
        """Train the head of a model in place; no other layer changes.

        Cross-validation chooses the passes unless ``epochs`` says how many. The result does not
        depend on the threads. Ctrl-C leaves the model as it was.
        """
        features = _features(model, data, threads)
        labels = np.ascontiguousarray(data.labels, np.int64)
        head = _head_alone(model)
        choosing = 0
        if epochs is None:
            epochs, choosing = self._choose_epochs(head, features, labels, units_of(data))
        head = self._trained(head, epochs, features, labels)
        found = head_op(model)
        weights = head.core.weights(0).reshape(model.core.weights(found).shape)
        model.core.set_parameters(found, weights, head.core.bias(0))
        return HeadWork(epochs, replace(self, epochs=epochs).macs(model, len(data)), choosing)

    def _trained(
        self, head: Model, epochs: int, features: npt.NDArray[np.int8], labels: _Labels
    ) -> Model:
        """Return a copy of a head that is trained on features."""
        schedule = self._schedule(epochs, len(features))
        trained = head.copy()
        options, batch = _core_options(self.seed), schedule.options.batch
        trainer = _core.Trainer(trained.core, options, [0], batch, _THREADS)
        for step in range(schedule.steps):
            chosen = schedule.indices(step)
            trainer.step(features[chosen], labels[chosen], step, schedule.learning_rate(step))
        return trained

    def _choose_epochs(
        self,
        head: Model,
        features: npt.NDArray[np.int8],
        labels: _Labels,
        units: npt.NDArray[np.int64],
    ) -> tuple[int, int]:
        """Return how many passes cross-validation chooses, and the MACs of choosing."""
        parts = folds(labels, _FOLDS, self.seed, units) if len(labels) >= 2 * _FOLDS else []
        if len(parts) < 2:
            return self.epochs, 0
        scored = np.sort(np.concatenate(parts))
        macs = 0

        def out_of_fold(epochs: int) -> ImageScores:
            """Score the images of the folds, each by a head that has not seen its fold."""
            nonlocal macs
            logits = np.empty((len(labels), head.output_shape[-1]), np.float32)
            for fold in parts:
                others = np.setdiff1d(np.arange(len(labels)), fold)
                trained = self._trained(head, epochs, features[others], labels[others])
                macs += self._pass_macs(head, epochs, len(others))
                logits[fold] = trained.core.logits(features[fold], _THREADS, False)
            return scores_of_logits(logits[scored], labels[scored])

        chosen, best = self.epochs, out_of_fold(self.epochs)
        for epochs in (self.epochs * factor for factor in LONGER):
            scores = out_of_fold(epochs)
            if not is_worse(best, scores):
                break
            chosen, best = epochs, scores
        return chosen, macs

    def _schedule(self, epochs: int, images: int) -> Schedule:
        batch = min(_BATCH, images)
        return Schedule(_Epochs(epochs, batch, self.learning_rate, self.seed), images)


def _core_options(seed: int) -> _core.Options:
    options = _core.Options()
    options.seed = seed
    options.step = "normalized"
    options.rounding = "stochastic"
    return options


def head_op(model: Model) -> int:
    """Return the op of the head: the last, or before a final mean the convolution that it reads.

    A 1x1 convolution and a mean over all positions are a linear layer of the mean features, but for
    the rounding of the convolution's outputs.
    """
    ops = model.core.ops()
    last = len(ops) - 1
    if last < 1 or ops[last]["kind"] != "mean" or ops[last]["inputs"] != (ops[last - 1]["output"],):
        return last
    head = ops[last - 1]
    plain = (head["kernel"], head["stride"], head["padding"]) == ((1, 1), (1, 1), (0, 0, 0, 0))
    unclamped = head["clamp"] == ops[last]["clamp"] == (-128, 127)
    return last - 1 if head["kind"] == "conv2d" and plain and unclamped else last


def _features(model: Model, data: Dataset, threads: int) -> npt.NDArray[np.int8]:
    """Compute the inputs of the head, part by part; their means where a mean follows it."""
    rows = max(1, _AT_ONCE // data.images[:1].nbytes)
    parts = [data.images[first : first + rows] for first in range(0, len(data), rows)]
    found = [model.core.inputs(model.prepare(part), head_op(model), threads) for part in parts]
    features = found[0] if len(found) == 1 else np.concatenate(found)
    if head_op(model) == model.core.op_count - 1:
        return features
    means: npt.NDArray[np.float64] = features.mean(axis=(1, 2), keepdims=True)
    return np.rint(means).astype(np.int8)


def _head_alone(model: Model) -> Model:
    """Return a model of the head, whose input is its features."""
    graph = model.to_graph()
    index = head_op(model)
    head, source = graph.ops[index], graph.tensors[graph.ops[index].inputs[0]]
    if index < len(graph.ops) - 1:  # its features are means
        assert head.weights is not None
        source = replace(source, height=1, width=1)
        head = replace(
            head, kind="fully_connected", weights=head.weights.reshape(len(head.weights), -1)
        )
    tensors = [source, graph.tensors[graph.output]]
    return Model.from_graph(graph_of_activations(tensors, [replace(head, inputs=(0,), output=1)]))
