"""The class names of a model whose head was trained for other classes than it names."""

from __future__ import annotations

from typing import Any

from pmt.datasets import Dataset
from pmt.model import Model
from pmt.model.class_checks import has_unlike_classes, is_named, unlike_classes
from pmt.train.losses import reads_labels

__all__ = [
    "learned_classes",
    "learns_classes",
    "note_on_classes",
    "warning_of_classes",
    "with_classes",
]


def learned_classes(model: Model, data: Dataset) -> tuple[str, ...] | None:
    """Return the names of a data set's classes, where a model that learned them lacks them.

    None where the data set does not name each of the model's classes, or the model has the same
    names.
    """
    names = data.class_names
    if not data.has_class_labels or not is_named(data) or len(names) != model.classes:
        return None
    return None if set(names) == set(model.class_names or ()) else names


def learns_classes(model: Model, options: Any) -> bool:
    """Whether a run of such options trains the model's last layer."""
    layers = getattr(options, "layers", None)
    return layers is not None and model.layers[-1].index in model.select_layers(layers)


def note_on_classes(model: Model, data: Dataset, options: Any) -> list[str]:
    """Return, as one line or none, that training gives the model other classes."""
    is_new = has_unlike_classes(data, model.class_names) and learned_classes(model, data)
    if not is_new or not learns_classes(model, options):
        return []
    return [
        f"{unlike_classes(data, model.class_names)}: where its trained head is kept, the model "
        "takes their names"
    ]


def warning_of_classes(model: Model, data: Dataset, options: Any) -> str | None:
    """Return a warning where a run teaches other classes to the layers below a head that stays.

    None where the loss reads no labels: it does not matter what their names are.
    """
    layers = getattr(options, "layers", None)
    if layers is None or learns_classes(model, options):
        return None
    if not reads_labels(getattr(options, "loss", "")):
        return None
    if not data.has_class_labels or not has_unlike_classes(data, model.class_names):
        return None
    return (
        f"{unlike_classes(data, model.class_names)}, and layers={layers!r} leaves its head as it "
        "is; add the last layer, or give the model's names as class_names where the classes are "
        "the same"
    )


def with_classes(model: Model, names: tuple[str, ...]) -> Model:
    """Return a copy of a model with such class names."""
    graph = model.to_graph()
    graph.metadata = {**graph.metadata, "class_names": list(names)}
    return Model.from_graph(graph)
