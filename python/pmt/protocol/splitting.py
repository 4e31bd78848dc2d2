"""Splits: the images that adapt a model, those that choose between models, those that test."""

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pmt._util.arrays import Int64Array
from pmt._util.checks import check_type, checked_integer, checked_word
from pmt._util.text import counted, did_you_mean
from pmt.datasets import Dataset
from pmt.datasets.dataset import checksum
from pmt.errors import OptionError
from pmt.model import Model
from pmt.protocol.data_source import DataSource, ImagePool, check_source
from pmt.protocol.stratification import (
    MOST_SHARED,
    count_shared,
    hold_out,
    shuffled_classes,
    stratified_order,
    units_of,
)

PROTOCOLS = ("default", "paper")
IMAGES, HELD_OUT = 1100, 100  # of "default", unless said otherwise
# In the data code that seems to be the first author's each class has 110 images to adapt, of which
# 10 choose, and 90 to test; 53 of the paper's 55 accuracies are multiples of 1/900.
PAPER_TRAIN, PAPER_HELD_OUT, PAPER_TEST = 100, 10, 90
PAPER_NEEDED = PAPER_TRAIN + PAPER_HELD_OUT + PAPER_TEST


def balanced_order(labels: npt.NDArray[np.integer], seed: int) -> Int64Array:
    """Order images so that the first n hold every class equally often, for every n.

    Each class is shuffled; then one image of each class is taken in turn. A class that runs out of
    images is passed over.

    Parameters
    ----------
    labels : ndarray of integers, shape (N,)
        Class of each image.
    seed : int
        Integer, 0 or more.

    Returns
    -------
    ndarray of int64, shape (N,)
        A permutation of 0 .. N - 1. Among its first n entries, two classes that still have images
        differ by at most one in how often they occur.

    Raises
    ------
    TypeError, ValueError
        If the seed is not an integer of at least 0.
    """
    by_class, keys, turn, _ = shuffled_classes(labels, seed)
    return by_class[np.lexsort((keys, turn))].astype(np.int64)


@dataclass(frozen=True, eq=False)
class Split:
    """The images of an experiment. Each part is corrupted and resized when it is first asked for.

    Parameters
    ----------
    train_pool, test_pool : ImagePool
        Pools that the images come from.
    train_indices, held_out_indices, test_indices : ndarray of int64
        Indices of the images, ascending; the first two of ``train_pool``.
    """

    train_pool: ImagePool
    test_pool: ImagePool
    train_indices: Int64Array
    held_out_indices: Int64Array
    test_indices: Int64Array

    @cached_property
    def train(self) -> Dataset:
        """Images that a model is adapted on, corrupted."""
        return self.train_pool.take(self.train_indices)

    @cached_property
    def held_out(self) -> Dataset | None:
        """Images to choose on (blocks, checkpoints), corrupted as ``train``; None if nothing is."""
        return self.train_pool.take(self.held_out_indices) if len(self.held_out_indices) else None

    def choosing(self) -> Dataset:
        """Return ``held_out``, or raise an error where nothing is held out."""
        if self.held_out is None:
            raise OptionError("held_out", " 0: a choice needs held-out images; take 100 or more")
        return self.held_out

    @cached_property
    def test(self) -> Dataset:
        """Images that are reported on, corrupted; nothing may be chosen on them."""
        return self.test_pool.take(self.test_indices)

    @cached_property
    def clean_test(self) -> Dataset | None:
        """The images of ``test`` without corruption; None where there is none or no clean image."""
        return self.test_pool.take_clean(self.test_indices) if self.test_pool.corruption else None


def split(
    name: str,
    train: ImagePool | None,
    test: ImagePool,
    *,
    seed: int = 0,
    images: int = IMAGES,
    held_out: int = HELD_OUT,
    test_images: int = 0,
) -> Split:
    """Choose the images of an experiment, each class by its share.

    A class keeps at least as many images to adapt on as are held out of it, or one where more than
    half are; one of fewer than four gives none. Images with equal pixels, or of one group, are on
    one side.

    Parameters
    ----------
    name : {"default", "paper"}
        ``"default"``: adapt on corrupted training images, choose on a held-out part of them, test
        on test images, corrupted with another seed.
        ``"paper"``: all from ``test``, as the paper does: of each class, in a seeded shuffle, 100
        images adapt, the next 10 choose, the next 90 test. ``train`` is not used.
    train, test : ImagePool
        Pools that the images come from.
    seed : int
        Decides the choice of images, 0 or more. A larger ``images`` keeps those already chosen, and
        where all classes are equally large ``held_out``, too.
    images : int
        Total number of training images, held-out ones included (only for ``"default"``).
    held_out : int
        Number of images that are held out; 0 holds none out (only for ``"default"``).
    test_images : int
        At most this many test images, balanced over the classes; 0 takes all of ``"default"``'s
        test images, or ``"paper"``'s 90 of each class.

    Returns
    -------
    Split
        Its parts are in ascending order of their index in the pool.

    Raises
    ------
    TypeError
        If a number is not an integer.
    ValueError
        If the name is unknown, a number is out of range, there are too few images, no image can
        be held out, both pools hold the same images or are corrupted with the same seed, or more
        than a tenth of the test images are among those to adapt or choose on.

    Warns
    -----
    UserWarning
        If some test images are among those to adapt or choose on, or fewer images than asked for
        can be held out.
    """
    check_type("test", test, ImagePool, "a pmt.protocol.ImagePool")
    check_type("train", train, (ImagePool, type(None)), "a pmt.protocol.ImagePool, or None")
    checked_word("name", name, PROTOCOLS)
    limit = _checked("test_images", test_images, len(test))
    if name == "paper":
        return _without_leak(_paper(test, seed, limit))
    if train is None:
        raise ValueError('train = None: the protocol "default" adapts on training images')
    total = _checked("images", images, len(train))
    kept = _checked("held_out", held_out, total - 1)
    _check_apart(train, test)
    unseen = train.unseen(total)
    order = unseen[stratified_order(train.labels[unseen], seed)][:total]
    choose = _held_out(train, order, kept)
    chosen = np.arange(len(test))
    if limit:
        chosen = balanced_order(test.labels, seed)[:limit]
    adapt = np.setdiff1d(order, choose)
    return _without_leak(Split(train, test, adapt, choose, np.sort(chosen)))


@dataclass(frozen=True)
class SplitChoice:
    """A protocol and its numbers, see :func:`pmt.protocol.split`.

    Parameters
    ----------
    protocol : {"default", "paper"}
        The protocol.
    images : int, optional
        Total number of training images, 2 or more; by default 1,100, or all if there are fewer. The
        paper's protocol fixes them.
    held_out : int, optional
        Number of images held out to choose on, 0 or more; by default 100, or half of fewer than
        200. The paper's protocol fixes it.
    seed : int
        Seed of the choice, 0 or more.
    """

    protocol: str = "default"
    images: int | None = None
    held_out: int | None = None
    seed: int = 0

    def of(self, source: DataSource, model: Model) -> Split:
        """Choose the images from a data source, at the size of the model's input.

        Raises
        ------
        TypeError
            If it is no data source.
        ValueError, FileNotFoundError
            As :func:`pmt.protocol.split`; or if numbers are given that the protocol fixes.
        """
        check_source(source)
        if self.protocol not in PROTOCOLS:
            near = did_you_mean(self.protocol, PROTOCOLS)
            raise OptionError("protocol", f" {self.protocol!r} is unknown{near}")
        test = source.pool("test", model)
        if self.protocol == "paper":
            for name in ("images", "held_out"):
                if getattr(self, name) is not None:
                    raise OptionError(name, " is fixed by ", "protocol", " paper; leave it out")
            return split(self.protocol, None, test, seed=self.seed)
        train = source.pool("train", model)
        images = min(IMAGES, len(train)) if self.images is None else self.images
        held_out = min(HELD_OUT, images // 2) if self.held_out is None else self.held_out
        return split(self.protocol, train, test, seed=self.seed, images=images, held_out=held_out)


def _held_out(pool: ImagePool, order: Int64Array, count: int) -> Int64Array:
    if count == 0:
        return order[:0]
    images = pool.images.subset(order)
    found = hold_out(images.labels, count, np.arange(len(order)), units_of(images))
    why = (
        "a class keeps at least as many images as it gives, one of three or fewer gives none, and "
        "copies stay on one side"
    )
    if not len(found):
        raise ValueError(
            f"held_out={count}: none of {counted(len(order), 'image')} can be held out: {why}; "
            "take more images, or held_out=0 to choose nothing"
        )
    if len(found) < count:
        warnings.warn(f"held_out={count}: {len(found)} are: {why}", stacklevel=4)
    return np.sort(order[found])


def _without_leak(split: Split) -> Split:
    """Return a split whose test images are not among those to adapt or choose on."""
    used = np.concatenate([split.train_indices, split.held_out_indices])
    tested = split.test_pool.images.subset(split.test_indices)
    shared = count_shared(tested, split.train_pool.images.subset(used))
    if not shared:
        return split
    where = f"of the {len(tested):,} to test on"
    message = (
        f"{counted(shared, f'image {where} is', f'images {where} are')} also among the "
        f"{len(used):,} to adapt or choose on (equal pixels)"
    )
    if shared > MOST_SHARED * len(tested):
        raise ValueError(f"{message}: their accuracy would say nothing; part the images first")
    warnings.warn(message, stacklevel=4)
    return split


def _paper(pool: ImagePool, seed: int, limit: int) -> Split:
    order = balanced_order(pool.labels, seed)
    counts = np.bincount(pool.labels, minlength=len(pool.images.class_names))
    scarce = int(counts.argmin())
    if counts[scarce] < PAPER_NEEDED:
        raise ValueError(
            f"{pool.images.name!r} has {counted(int(counts[scarce]), 'image')} of class "
            f"{pool.images.class_names[scarce]!r}: the protocol 'paper' needs {PAPER_NEEDED} of "
            f"each ({PAPER_TRAIN} to adapt, {PAPER_HELD_OUT} to choose, {PAPER_TEST} to test); "
            "use the protocol 'default' or a data set with more"
        )
    # The first k rounds of the order hold the first k of the shuffle of each class.
    ends = np.cumsum([PAPER_TRAIN, PAPER_HELD_OUT, PAPER_TEST]) * len(counts)
    adapt, choose, report = np.split(order[: ends[-1]], ends[:-1])
    report = report[:limit] if limit else report
    return Split(pool, pool, np.sort(adapt), np.sort(choose), np.sort(report))


def _checked(argument: str, value: int, most: int) -> int:
    count = checked_integer(argument, value)
    least = 1 if argument == "images" else 0
    if not least <= count <= most:
        remedy = "; hold fewer out or take more images" if argument == "held_out" else ""
        raise ValueError(f"{argument}={count} must be {least} to {most} with these images{remedy}")
    return count


def _check_apart(train: ImagePool, test: ImagePool) -> None:
    if len(train) == len(test) and checksum(train.images) == checksum(test.images):
        raise ValueError(
            f"train and test are the same images ({train.images.name!r}): use a data set with two "
            "splits, or the protocol 'paper', which parts one"
        )
    made = train.corruption and test.corruption and train.stored is None and test.stored is None
    if made and train.seed == test.seed:
        raise ValueError(
            f"train and test are both corrupted with seed = {train.seed}: the noise of an image "
            "would return in the other; use pmt.corruptions.split_seed"
        )
