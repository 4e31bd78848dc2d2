"""The linear head trained alone, on features that are computed once.

What the last layer sees does not depend on it: one forward an image gives its features, and as many
passes over them as one likes cost next to nothing. The gradient is exact, that of softmax
regression. A network whose head fits its features is trained from a better start: linear probing,
then fine-tuning (Kumar et al. 2022, arXiv:2202.10054).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pmt import _core
from pmt.datasets import Dataset
from pmt.model import Model
from pmt.net.graph import graph_of_activations
from pmt.train.costs.work import zeroth_order_work
from pmt.train.options import TrainingOptions
from pmt.train.schedule import Schedule

__all__ = ["head_cost", "train_head", "trains_head"]


def trains_head(model: Model, options: TrainingOptions) -> bool:
    """Whether options train the head alone before the first step.

    They have ``head_epochs`` above 0, and ``layers`` with the model's last, whose gradient is
    exact: it is linear, and neither ``rule="weight"`` nor ``int8_logits`` says otherwise.
    """
    last = model.core.op_count - 1
    if options.head_epochs == 0 or last not in model.select_layers(options.layers):
        return False
    (head,) = _core.Trainer(model.core, options.to_core(), [last], 1, 1).layers()
    return bool(head["estimator"] == "closed_form")


def head_cost(model: Model, options: TrainingOptions, images: int) -> int:
    """Count MACs: a forward an image up to the head, then the head alone in every epoch."""
    macs = [int(op["macs"]) for op in model.core.ops()]
    head = _head_alone(model).core
    schedule = _schedule(options, images)
    step = zeroth_order_work(head, _core_options(options, images), [0]).cost(options.batch)
    return images * sum(macs[:-1]) + schedule.steps * step.macs


def train_head(model: Model, data: Dataset, options: TrainingOptions, *, threads: int = 0) -> None:
    """Train the head of a model in place, for ``head_epochs`` epochs.

    Steps are those of a run on the head, with its order of images, ``learning_rate`` and
    ``final_learning_rate``; no other layer changes. The result does not depend on the threads.
    Ctrl-C leaves the model as it was.
    """
    schedule = _schedule(options, len(data))
    last = model.core.op_count - 1
    features = model.core.inputs(model.prepare(data.images), last, threads)
    labels = np.ascontiguousarray(data.labels, np.int64)
    head = _head_alone(model).core
    trainer = _core.Trainer(head, _core_options(options, len(data)), [0], options.batch, threads)
    for step in range(schedule.steps):
        batch = schedule.indices(step)
        trainer.step(features[batch], labels[batch], step, schedule.learning_rate(step))
    model.core.set_parameters(last, head.weights(0), head.bias(0))


def _schedule(options: TrainingOptions, images: int) -> Schedule:
    epochs = replace(options, epochs=options.head_epochs, macs=0, warmup_epochs=0)
    return Schedule(epochs, images)


def _core_options(options: TrainingOptions, images: int) -> _core.Options:
    return options.for_samples(images).to_core()


def _head_alone(model: Model) -> Model:
    """Return a model of the last op, whose input is its features."""
    graph = model.to_graph()
    head = graph.ops[-1]
    tensors = [graph.tensors[head.inputs[0]], graph.tensors[head.output]]
    return Model.from_graph(graph_of_activations(tensors, [replace(head, inputs=(0,), output=1)]))
