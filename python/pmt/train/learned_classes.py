"""The class names of a model whose head was trained for other classes than it names."""

from __future__ import annotations

from pmt.datasets import Dataset
from pmt.model import Model
from pmt.model.class_checks import is_named

__all__ = ["learned_classes", "with_classes"]


def learned_classes(model: Model, data: Dataset) -> tuple[str, ...] | None:
    """Return the names of a data set's classes, where a model that learned them lacks them.

    None where the data set does not name each of the model's classes, or the model has the same
    names.
    """
    names = data.class_names
    if not data.has_class_labels or not is_named(data) or len(names) != model.classes:
        return None
    return None if set(names) == set(model.class_names or ()) else names


def with_classes(model: Model, names: tuple[str, ...]) -> Model:
    """Return a copy of a model with such class names."""
    graph = model.to_graph()
    graph.metadata = {**graph.metadata, "class_names": list(names)}
    return Model.from_graph(graph)
