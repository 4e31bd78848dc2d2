"""A seeded order of images in which every beginning is balanced over the classes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pmt.datasets.checks import checked_seed

__all__ = ["balanced_order"]


def balanced_order(labels: npt.NDArray[np.integer], seed: int) -> npt.NDArray[np.int64]:
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
    count = len(labels)
    # Only raw 64-bit draws: NumPy promises their stream, not that of its shuffles.
    keys = np.random.PCG64(np.random.SeedSequence(checked_seed(seed))).random_raw(count)
    shuffled = np.argsort(keys, kind="stable")
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    sizes = np.bincount(labels, minlength=1)
    turn = np.arange(count) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return by_class[np.lexsort((keys[by_class], turn))].astype(np.int64)
