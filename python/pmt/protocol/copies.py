"""Copies: images with equal pixels, and near copies of one group, which stay on one side."""

import numpy as np
import numpy.typing as npt

from pmt._util.arrays import Int64Array
from pmt.datasets import Dataset
from pmt.datasets.dataset import image_digests

# Share of the images on one side that may also stand on the other: data sets of the field hold some
# copies.
MOST_SHARED = 0.1

_Indices = Int64Array


def count_shared(part: Dataset, other: Dataset) -> int:
    """Count the images of a part that another data set holds, too, all values equal."""
    if part.images.dtype != other.images.dtype or part.images.shape[1:] != other.images.shape[1:]:
        return 0
    return int(np.isin(image_digests(part), image_digests(other)).sum())


def first_of_copies(data: Dataset) -> _Indices:
    """Return the indices of the images that no image before them equals, ascending."""
    return np.sort(np.unique(image_digests(data), return_index=True)[1]).astype(np.int64)


def units_of(data: Dataset) -> _Indices:
    """Number the images: equal ones, those of a group, and those linked by them have one number."""
    units = _numbered(image_digests(data))
    if data.groups is None:
        return units
    alone = data.groups == ""
    groups = _numbered(data.groups)
    groups[alone] = groups.max(initial=0) + 1 + np.arange(np.count_nonzero(alone))
    joined = units
    while True:
        wider = _least(groups, _least(units, joined))
        if np.array_equal(wider, joined):
            return joined
        joined = wider


def _numbered(values: npt.NDArray[np.generic]) -> _Indices:
    numbers: _Indices = np.unique(values, return_inverse=True)[1].astype(np.int64)
    return numbers.reshape(-1)


def _least(keys: _Indices, values: _Indices) -> _Indices:
    """Return for each key the least of its values."""
    least = np.full(keys.max() + 1, np.iinfo(np.int64).max)
    np.minimum.at(least, keys, values)
    found: _Indices = least[keys]
    return found
