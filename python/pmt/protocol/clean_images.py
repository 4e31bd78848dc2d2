"""Clean images by the name of their data set, bundled ones too."""

from __future__ import annotations

from dataclasses import replace

from pmt import datasets
from pmt.datasets import Dataset
from pmt.datasets.layouts import chosen_indices
from pmt.datasets.picture import Fit, resized
from pmt.protocol.data_source import BUNDLED

__all__ = ["load_clean"]


def load_clean(
    data: str,
    *,
    split: str = "test",
    size: int | tuple[int, int] | None = None,
    limit: int = 0,
    labels: str = "fine",
) -> Dataset:
    """Read a split of a data set.

    Parameters
    ----------
    data : str
        Data set in any layout of :func:`pmt.datasets.load`, or ``"bundled"``.
    split : {"train", "test"}
        Which part.
    size : int or (int, int), optional
        Height and width in pixels that images are resized to; by default their own.
    limit : int
        At most so many images, chosen at random, always the same ones; 0 takes all.
    labels : {"fine", "coarse"}
        Which labels of CIFAR-100.

    Returns
    -------
    Dataset
        The images.

    Raises
    ------
    FileNotFoundError, ValueError, ImportError
        As :func:`pmt.datasets.load`.
    """
    if data != BUNDLED:
        return datasets.load(data, split=split, size=size, limit=limit, labels=labels)
    found = datasets.bundled(split)
    found = found.subset(chosen_indices(len(found), limit))
    if size is None:
        return found
    height, width = (size, size) if isinstance(size, int) else size
    return replace(found, images=resized(found.images, Fit((height, width))))
