"""Names of classes compared: by their plain form, and data counted in the order of other names."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pmt.datasets.dataset import Dataset

# A number, something that separates, and then a letter: `0_Shirt`, `1. Coat`.
_NUMBERED = re.compile(r"\d+[\W_]+(?=[^\W\d_])")


def are_names(names: Sequence[str]) -> bool:
    """Whether classes have names, and not only numbers."""
    return not all(name == str(label) for label, name in enumerate(names))


def comparable(names: Sequence[str], others: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return both in the plainest form that keeps different names apart: `1 euro` and `2 euro`.

    Case, a number before a name (`0_Shirt`), and what is neither a letter nor a digit do not
    matter.
    """
    for form in (_unnumbered, _plain, str.casefold):
        here, there = list(map(form, names)), list(map(form, others))
        if len(set(here)) == len(set(names)) and len(set(there)) == len(set(others)):
            return here, there
    return list(names), list(others)


def in_order_of(data: Dataset, names: Sequence[str] | None) -> Dataset:
    """Return a data set whose labels count the classes in the order of other names, a model's.

    It gets these names where each of its own is among them, as :func:`comparable` compares them;
    else it is as it was, also where either has only numbers, or the images have no class labels.
    """
    own = data.class_names
    if names is None or own == tuple(names) or not data.has_class_labels:
        return data
    if not are_names(own) or not are_names(names):
        return data
    here, there = comparable(own, names)
    if not set(here) <= set(there):
        return data
    places = np.array([there.index(name) for name in here])
    return replace(data, labels=places[data.labels], class_names=tuple(names))


def _unnumbered(name: str) -> str:
    match = _NUMBERED.match(name)
    return _plain(name[match.end() :] if match else name)


def _plain(name: str) -> str:
    # A name of symbols only stays as it is, or any two of them were the same.
    return "".join(filter(str.isalnum, name.casefold())) or name
