"""Class names of the well-known data sets, and the names that fit given labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pmt.datasets.damage import damaged

CIFAR10_CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
FASHION_MNIST_CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


def names_for(
    path: Path | str,
    labels: npt.NDArray[np.integer],
    class_names: Sequence[str] | None,
    *,
    at_least: int = 1,
) -> tuple[str, ...]:
    """Return `class_names`, or the numbers "0", "1", ... as names; check that the labels fit.

    Parameters
    ----------
    path
        The file the labels are from, for the error.
    labels
        Integers, shape (N,), N at least 1.
    class_names
        Names in the order of the labels, or None.
    at_least
        Fewest classes when the numbers are the names.

    Raises
    ------
    ValueError
        A label is negative or has no name.
    """
    low, high = int(labels.min()), int(labels.max())
    if low < 0:
        raise damaged(path, f"label {low} is below 0", "number the classes from 0")
    if class_names is None:
        return tuple(str(label) for label in range(max(at_least, high + 1)))
    if high >= len(class_names):
        raise damaged(
            path,
            f"label {high} is out of range 0 to {len(class_names) - 1} of the "
            f"{len(class_names)} class names",
            "correct the label or give a name for every class",
        )
    return tuple(class_names)
