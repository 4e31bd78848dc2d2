"""Images that are held out and folds: each class by its share, copies and groups on one side."""

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt._util.arrays import Int64Array, Uint8Array
from pmt._util.checks import checked_range
from pmt.datasets import Dataset
from pmt.datasets.arrays import label_array
from pmt.datasets.dataset import image_digests

FEWEST_OF_CLASS = _core.FEWEST_OF_CLASS  # images of a class, of which one may be held out

_Indices = Int64Array


def stratified_order(labels: npt.NDArray[np.integer], seed: int) -> _Indices:
    """Order images so that the first n hold of every class its share, for every n.

    Each class is shuffled; the k-th image of a class of s images stands where a share of k / s of
    all images is passed. Where all classes are equally large, this is
    :func:`pmt.protocol.balanced_order`. Labels are classes (N,), 0 or more, and the seed is 0 or
    more; the result is a permutation of 0 .. N - 1.
    """
    by_class, keys, turn, sizes = shuffled_classes(labels, seed)
    return by_class[np.lexsort((keys, (turn + 1) / sizes))].astype(np.int64)


def shuffled_classes(
    labels: npt.NDArray[np.integer], seed: int
) -> tuple[_Indices, npt.NDArray[np.uint64], _Indices, _Indices]:
    """Shuffle each class: return indices by class, and of each its key, its turn, its class's size.

    A key is random; the turn counts the images of a class from 0.
    """
    labels = label_array(labels)
    count = len(labels)
    # Only raw 64-bit draws: NumPy promises their stream, not that of its shuffles.
    keys = np.random.PCG64(np.random.SeedSequence(checked_range("seed", seed, 0))).random_raw(count)
    shuffled = np.argsort(keys, kind="stable")
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    sizes = np.bincount(labels, minlength=1)
    turn = np.arange(count) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return by_class, keys[by_class], turn, np.repeat(sizes, sizes)


def hold_out(
    labels: npt.NDArray[np.integer], count: int, order: _Indices, units: _Indices
) -> _Indices:
    """Choose images to hold out: units as they come in an order, until there are enough.

    A class keeps at least as many images as it gives, or at least one where more than half of all
    are asked for; a class of fewer than :data:`FEWEST_OF_CLASS` gives none. A unit goes whole, so
    there may be fewer images than `count`, or more by less than a unit. `labels` and `units`, see
    :func:`units_of`, have shape (N,); `order` holds the indices of the images that are looked at,
    as :func:`stratified_order` returns them. Returns indices, ascending.
    """
    sizes = np.bincount(labels[order], minlength=1)
    most = sizes // 2 if 2 * count <= len(order) else sizes - 1
    room = np.where(sizes < FEWEST_OF_CLASS, 0, most)
    taken: list[_Indices] = []
    left = count
    for rows in _by_unit(order, units):
        if 2 * left < len(rows):
            if left <= 0:
                break
            continue
        given = np.bincount(labels[rows], minlength=len(room))
        if (given <= room).all():
            taken.append(rows)
            room -= given
            left -= len(rows)
    return np.sort(np.concatenate(taken)) if taken else np.empty(0, np.int64)


def folds(
    labels: npt.NDArray[np.integer], number: int, units: _Indices
) -> list[npt.NDArray[np.intp]]:
    """Part images into folds for a cross-validation, each with about its share of every class.

    Units, see :func:`units_of`, stay whole. In the order of the images each goes to the fold with
    the fewest images of its first one's class. Units with an image of a class of fewer than
    :data:`FEWEST_OF_CLASS` are in no fold, so that they are always trained on; where all classes
    are as small, this holds for classes of one image. There are fewer folds than `number`, which is
    16 at most, where there are not as many units. `labels` and `units` have shape (N,); returns the
    indices of the images of each fold, ascending, none empty.
    """
    numbers = _core.assign_folds(labels.astype(np.int64), _first_of_units(units), number)
    found = [np.flatnonzero(numbers == fold) for fold in range(number)]
    return [fold for fold in found if len(fold)]


def head_folds(labels: npt.NDArray[np.integer], units: _Indices) -> Uint8Array | None:
    """Return the folds that choose a head's strength, as numbers (N,), or None for too few images.

    The rule is that of :func:`folds`, and a learner's own.
    """
    return _core.assign_head_folds(labels.astype(np.int64), _first_of_units(units))


def _first_of_units(units: _Indices) -> _Indices:
    """Return for each image the first one of its unit, as indices (N,)."""
    _, firsts, places = np.unique(units, return_index=True, return_inverse=True)
    return firsts.astype(np.int64)[places.reshape(-1)]


def share_classes(
    order: _Indices, cut: int, end: int, units: _Indices, labels: npt.NDArray[np.integer]
) -> _Indices:
    """Exchange units of an order so that images apart from either half hold every class.

    The halves end before places `cut` and `end`; `order` has the images of a unit one after
    another. An order that has every class of two units or more there is returned as it is. Units of
    one size are exchanged first, as no other image moves then. A class stays where no exchange
    helps it without taking another class away.
    """
    classes, owners = np.unique(np.stack([labels, units]), axis=1)
    several, sizes = np.bincount(classes) > 1, np.bincount(units)

    def apart_of(order: _Indices) -> tuple[npt.NDArray[np.bool_], _Indices]:
        """Return which units are apart from each half, and how many of them hold each class."""
        apart = np.ones((2, len(sizes)), np.bool_)
        apart[0, units[order[:cut]]] = apart[1, units[order[cut:end]]] = False
        counts = [np.bincount(classes[one[owners]], minlength=len(several)) for one in apart]
        return apart, np.array(counts)

    def lacking(order: _Indices) -> npt.NDArray[np.bool_]:
        """Return for each half the classes that no unit apart from it holds."""
        found: npt.NDArray[np.bool_] = (apart_of(order)[1] == 0) & several
        return found

    for half, name in np.argwhere(lacking(order)):
        apart, counts = apart_of(order)
        if counts[half, name] > 0:  # by an exchange for another class
            continue
        ranks = np.zeros(len(sizes), np.int64)
        ranks[units[order[::-1]]] = np.arange(len(order))[::-1]
        is_few = several & (counts < 2)
        own = owners[(classes == name) & apart[1 - half, owners]]
        is_spare = apart[half] > apart[1 - half]
        is_spare[owners[is_few[half, classes]]] = False
        own, spare = (some[np.argsort(ranks[some])] for some in (own, np.flatnonzero(is_spare)))
        # A spare unit of the same size must hold the classes that are lost with the other one.
        fits = np.empty((len(spare), len(own)), np.bool_)
        for place, unit in enumerate(own):
            lost = classes[(owners == unit) & is_few[1 - half, classes]]
            held = np.bincount(owners[np.isin(classes, lost)], minlength=len(sizes))
            fits[:, place] = (sizes[spare] == sizes[unit]) & (held[spare] == len(lost))
        pairs = np.stack(np.meshgrid(spare, own, indexing="ij"), axis=-1).reshape(-1, 2)
        unlike = np.abs(np.diff(sizes[pairs])).reshape(-1)
        others = np.argsort(unlike, kind="stable")[np.count_nonzero(unlike == 0) :]
        most = counts == 0
        most[half, name] = False
        for pair in pairs[np.r_[np.flatnonzero(fits)[:1], others]]:
            exchanged = ranks.copy()
            exchanged[pair] = ranks[pair[::-1]]
            tried = order[np.argsort(exchanged[units[order]], kind="stable")]
            if (lacking(tried) <= most).all():
                order = tried
                break
    return order


def _by_unit(order: _Indices, units: _Indices) -> list[_Indices]:
    """Return the images of each unit, the units as they first come in an order."""
    found = units[order]
    by_unit = np.argsort(found, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(found[by_unit]) != 0])
    parts = np.split(order[by_unit], starts[1:])
    return [parts[place] for place in np.argsort(by_unit[starts], kind="stable")]


# Share of the images on one side that may also stand on the other: data sets of the field hold some
# copies.
MOST_SHARED = 0.1


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
