"""Checks that the classes of a data set are those of a model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from pmt import corruptions
from pmt.datasets import Dataset

__all__ = ["check_labels", "is_named", "listed", "warn_of_other_classes"]

_LISTED = 4


def check_labels(data: Dataset, classes: int, source: str) -> None:
    """Raise ValueError if a data set has no class labels, or some that a model has no class for."""
    if not data.has_class_labels:
        found = "float targets" if data.has_targets else "no labels"
        raise ValueError(
            f"data set {data.name!r} has {found}: this takes an integer label for each image"
        )
    largest = int(data.labels.max())
    if largest >= classes:
        remedy = f"a model of {largest + 1} classes"
        if source.startswith("tiny-training"):
            remedy = f"import the model from its .pkl with classes={largest + 1}"
        raise ValueError(
            f"data set {data.name!r} has label {largest}, the model has {classes} "
            f"classes (0..{classes - 1}); use another data set, or {remedy}"
        )


def warn_of_other_classes(data: Dataset, classes: int, names: object, *, stacklevel: int) -> None:
    """Warn where named classes are fewer than a model's, in another order, or corruptions.

    A folder without one class numbers the classes after it otherwise.
    """
    if not is_named(data):
        return
    own = data.class_names
    if set(own) <= set(corruptions.names()):
        warnings.warn(
            f"the classes of data set {data.name!r} are names of corruptions ({listed(own)}): "
            "corrupted copies are read with --corruption NAME, in Python with "
            "pmt.datasets.load_corrupted",
            stacklevel=stacklevel,
        )
        return
    if len(own) < classes:
        warnings.warn(
            f"data set {data.name!r} has {len(own)} classes ({listed(own)}), the model {classes}: "
            "label 0 of both must be the same class, and so on; give all of the model's classes "
            "as class_names, or use a model of as many classes",
            stacklevel=stacklevel,
        )
        return
    if not isinstance(names, list) or sorted(map(str, names)) != sorted(own):
        return
    for label, (here, there) in enumerate(zip(own, names, strict=True)):
        if here != there:
            warnings.warn(
                f"data set {data.name!r} numbers the classes otherwise than the model: class "
                f"{label} is {here!r}, the model's {there!r}; load it with the model's class_names",
                stacklevel=stacklevel,
            )
            return


def is_named(data: Dataset) -> bool:
    """Whether the classes have names, and not only numbers."""
    return not all(name == str(label) for label, name in enumerate(data.class_names))


def listed(names: Sequence[object]) -> str:
    """Return the first few names, and how many there are besides."""
    shown = ", ".join(map(str, names[:_LISTED]))
    rest = len(names) - _LISTED
    return f"{shown} and {rest} more" if rest > 0 else shown
