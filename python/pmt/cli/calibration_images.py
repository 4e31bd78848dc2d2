"""Images of a data set, in the shape that a float network reads."""

from __future__ import annotations

from dataclasses import replace

from pmt import datasets
from pmt.datasets import Dataset
from pmt.datasets.layouts import chosen_indices
from pmt.datasets.picture import Fit, resized
from pmt.protocol.data_source import BUNDLED
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
    if path == BUNDLED:
        data = datasets.bundled(split)
        data = data.subset(chosen_indices(len(data), limit))
        data = replace(data, images=resized(data.images, Fit((height, width))))
    else:
        data = datasets.load(path, split=split, size=(height, width), limit=limit)
    if data.images.shape[3] != channels:
        raise ValueError(
            f"{argument} {path}: images have {data.images.shape[3]} channels, the network reads "
            f"{channels}; convert the images or use another network"
        )
    return data
