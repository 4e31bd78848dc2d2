"""Images of a data set, in the shape that a float network reads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pmt import datasets
from pmt.cli.sources import BUNDLED
from pmt.datasets import Dataset
from pmt.datasets.picture import Fit, resized
from pmt.quantization import FloatGraph

__all__ = ["calibration_images"]


def calibration_images(
    path: str, graph: FloatGraph, *, split: str, limit: int, argument: str
) -> Dataset:
    """Read a split, resized to the network's input.

    Parameters
    ----------
    path : str
        Data set in any layout of :func:`pmt.datasets.load`, or ``"bundled"``.
    graph : FloatGraph
        Whose input size and channels the images must have.
    split : {"train", "test"}
        Which part.
    limit : int
        At most so many images, chosen at random, always the same ones; 0 takes all.
    argument : str
        The command's argument that gave ``path``, for messages.

    Raises
    ------
    FileNotFoundError, ValueError, ImportError
        As :func:`pmt.datasets.load`; or if the network reads another number of channels.
    """
    height, width, channels = graph.tensors[graph.input].shape
    data = _read(path, split, (height, width))
    if data.images.shape[3] != channels:
        raise ValueError(
            f"{argument} {path}: images have {data.images.shape[3]} channels, the network reads "
            f"{channels}; convert the images or use another network"
        )
    data = data.subset(_chosen(len(data), limit))
    if data.images.shape[1:3] != (height, width):
        data = replace(data, images=resized(data.images, Fit((height, width))))
    return data


def _read(path: str, split: str, size: tuple[int, int]) -> Dataset:
    if path == BUNDLED:
        return datasets.bundled(split)
    try:
        return datasets.load(path, split=split)
    except ValueError:  # an image folder of several sizes can only be read resized
        return datasets.load(path, split=split, size=size)


def _chosen(count: int, limit: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    if limit == 0 or limit >= count:
        return np.arange(count)
    # Only raw 64-bit draws: NumPy promises their stream, not that of its shuffles.
    keys = np.random.PCG64(np.random.SeedSequence(0)).random_raw(count)
    return np.sort(np.argsort(keys, kind="stable")[:limit])
