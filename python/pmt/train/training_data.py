"""The images of a run: data sets of what the caller gave, and whether they can teach anything."""

from __future__ import annotations

import warnings

import numpy as np

from pmt.datasets import Dataset
from pmt.datasets.dataset import DataLike
from pmt.model import Model
from pmt.model.class_checks import is_named, listed
from pmt.model.input_conversion import check_range

__all__ = ["checked_training_data"]

_FEWEST = 10  # images that say something about a data set's classes
_STACK = 4  # the caller of fit


def checked_training_data(
    model: Model, data: DataLike, valid: DataLike | None
) -> tuple[Dataset, Dataset | None]:
    """Return the images to train on and to watch, checked against the model and each other.

    Parameters
    ----------
    model : Model
        The model that is to be trained.
    data, valid : Dataset or tuple of two arrays
        Training images, and those that are watched, if any.

    Returns
    -------
    tuple of Dataset and Dataset or None
        Both.

    Raises
    ------
    TypeError
        One is neither a data set nor a pair of arrays.
    ValueError
        A label is outside the model's classes; or no class is in both, or they name it otherwise.

    Warns
    -----
    UserWarning
        Where training images are of one class alone or of half the model's classes or fewer; more
        than half of ``valid`` is of classes that no training image has; or the inputs are outside
        of what the model's input can hold.
    """
    images = Dataset.of(data, "data")
    model.check_classes(images)
    check_range(model.core, images)
    _warn_of_few_classes(images, model.classes)
    if valid is None:
        return images, None
    watched = Dataset.of(valid, "valid")
    model.check_classes(watched)
    _check_names(images, watched)
    _check_common_classes(images, watched)
    return images, watched


def _warn_of_few_classes(data: Dataset, classes: int) -> None:
    found = np.unique(data.labels)
    count = len(data)
    if count < _FEWEST or classes < 2:
        return
    if len(found) == 1:
        warnings.warn(
            f"all {count:,} training images of {data.name!r} are of class "
            f"{_named(data, int(found[0]))}, and the model has {classes}: where files are sorted "
            f"by class, shuffle before you cut, data.shuffled(0).take({count})",
            stacklevel=_STACK,
        )
    elif not is_named(data) and len(found) <= classes // 2 and count >= 2 * classes:
        warnings.warn(
            f"data set {data.name!r} has images of {len(found)} classes "
            f"({listed(found.tolist())}), the model has {classes}: it unlearns the others; "
            "use a model of as many classes, or images of all",
            stacklevel=_STACK,
        )


def _named(data: Dataset, label: int) -> str:
    return f"{label} ({data.class_names[label]!r})" if is_named(data) else str(label)


def _check_names(data: Dataset, valid: Dataset) -> None:
    if not is_named(data) or not is_named(valid):
        return
    for label, (name, other) in enumerate(zip(data.class_names, valid.class_names, strict=False)):
        if name != other:
            raise ValueError(
                f"class {label} is {name!r} in data ({data.name!r}) and {other!r} in valid "
                f"({valid.name!r}): load both with one class_names=[...]"
            )


def _check_common_classes(data: Dataset, valid: Dataset) -> None:
    trained = np.unique(data.labels)
    unknown = ~np.isin(valid.labels, trained)
    others = np.unique(valid.labels[unknown]).tolist()
    if unknown.all():
        raise ValueError(
            f"data has images of the classes {listed(trained.tolist())} and valid of "
            f"{listed(others)}, none in common: hold valid out of the same images, "
            "data.shuffled(0).split(0.9, seed=0)"
        )
    if len(valid) >= _FEWEST and unknown.mean() > 0.5:
        warnings.warn(
            f"{int(unknown.sum()):,} of {len(valid):,} images of valid are of classes that no "
            f"training image has: {listed(others)}; where files are sorted by class, shuffle "
            "before you part them, data.shuffled(0)",
            stacklevel=_STACK,
        )
