"""Checks of a data set against a model: its classes, and images that the network was trained on.

On those the network is nearly right, whatever else is done to it: they can neither teach it much
nor show which state of it is better on others.
"""

import warnings
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pmt import corruptions
from pmt._util.arrays import BoolArray
from pmt._util.text import counted, listed
from pmt.datasets import Dataset
from pmt.datasets.class_names import are_names, comparable
from pmt.net.graph import SEEN_IMAGES


def check_labels(data: Dataset, classes: int) -> None:
    """Raise ValueError if a data set has no class labels, or some that a model has no class for."""
    if not data.has_class_labels:
        found = "float targets" if data.has_targets else "no labels"
        raise ValueError(
            f"data set {data.name!r} has {found}: this takes an integer label for each image"
        )
    largest = int(data.labels.max())
    if largest >= classes:
        remedy = f"give the model a new last layer by classes={largest + 1} (--classes)"
        if largest == classes and int(data.labels.min()) == 1:
            remedy = f"as labels begin at 1, y - 1; or {remedy}"
        raise ValueError(
            f"data set {data.name!r} has label {largest}, the model has {classes} "
            f"classes (0..{classes - 1}); use another data set, or {remedy}"
        )


def warn_of_other_classes(data: Dataset, classes: int, *, stacklevel: int) -> None:
    """Warn where named classes are fewer than a model's, or corruptions.

    A folder without one class numbers the classes after it otherwise.
    """
    if not is_named(data):
        return
    own = data.class_names
    if _are_corruptions(own):
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
            f"as class_names (--class-names), or the model a new last layer by classes={len(own)} "
            "(--classes)",
            stacklevel=stacklevel,
        )


def warn_of_unlike_classes(data: Dataset, names: Sequence[str] | None, *, stacklevel: int) -> None:
    """Warn where accuracy says nothing, because most classes of a model have other names."""
    if has_unlike_classes(data, names):
        warnings.warn(
            f"{unlike_classes(data, names)}: accuracy on them says nothing; train the model's head "
            "for them, or give the model's names as class_names (--class-names) where the classes "
            "are the same",
            stacklevel=stacklevel,
        )


def has_unlike_classes(data: Dataset, names: Sequence[str] | None) -> bool:
    """Whether a data set names fewer than half of a model's classes as the model does.

    Not where either has numbers for names, or there are warnings of :func:`warn_of_other_classes`.
    Names are compared by their plain form.
    """
    own = data.class_names
    if names is None or not are_names(own) or not are_names(names) or len(own) < len(names):
        return False
    here, there = comparable(own, names)
    if sorted(here) == sorted(there) or _are_corruptions(own):
        return False
    agreeing = sum(one == other for one, other in zip(here, there, strict=False))
    return 2 * agreeing < len(names)


def unlike_classes(data: Dataset, names: Sequence[str] | None) -> str:
    """Return a data set's class names and a model's, for a message."""
    return (
        f"data set {data.name!r} has other classes ({listed(data.class_names)}) than the model "
        f"({listed(names or ())})"
    )


def _are_corruptions(names: Sequence[str]) -> bool:
    return set(names) <= set(corruptions.names())


def is_named(data: Dataset) -> bool:
    """Whether the classes have names, and not only numbers."""
    return are_names(data.class_names)


def range_of_images(data: Dataset, first: int, count: int) -> dict[str, int]:
    """Return ``first``, ``count`` and ``crc32`` of a range of images, at their own size."""
    images = np.ascontiguousarray(data.images[first : first + count])
    return {"first": first, "count": len(images), "crc32": zlib.crc32(images.data)}


def seen_images(metadata: Mapping[str, Any], data: Dataset) -> BoolArray:
    """Find the images of a data set that a network was trained on: bool (N,), true where it was.

    They are found where the data set, at its own size, holds a whole range at its place: the
    official training images of CIFAR-10, and not a thousand of them. The entry ``seen_images`` of a
    model's metadata lists ranges as :func:`range_of_images` returns them.
    """
    seen = np.zeros(len(data), np.bool_)
    ranges = metadata.get(SEEN_IMAGES)
    for one in ranges if isinstance(ranges, list) else ():
        if not isinstance(one, dict):
            continue
        first, count = one.get("first"), one.get("count")
        if type(first) is not int or type(count) is not int:
            continue
        inside = 0 <= first < first + count <= len(data)
        if inside and range_of_images(data, first, count) == one:
            seen[first : first + count] = True
    return seen


def warning_of_seen(seen: int, count: int) -> str:
    """Return the warning that some of the images to train and choose on are not new."""
    return (
        f"the network was trained on {seen:,} of these {counted(count, 'image')} before: what is "
        "chosen on them says little of others; give images that it has not seen"
    )
