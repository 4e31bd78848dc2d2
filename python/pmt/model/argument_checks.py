"""Errors about arguments of a wrong kind: each names the rule, and the remedy for the case."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._util.counted import counted
from pmt.datasets import Dataset

__all__ = ["array_remedy", "images_in_shape", "kind_of"]


def kind_of(value: object) -> str:
    """Return a value in a word or two, for an error: itself where that is short, else its type."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    short = isinstance(value, (str, bool, int, float, type(None)))
    return repr(value) if short else type(value).__name__


def images_in_shape(images: npt.NDArray[Any], expected: tuple[int, int, int]) -> npt.NDArray[Any]:
    """Return images of a model's (height, width, channels); gray ones may lack the last axis.

    Raises
    ------
    ValueError
        If they have another shape.
    """
    if images.ndim == 4 and images.shape[1:] == expected:
        return images
    if images.ndim == 3 and (*images.shape[1:], 1) == expected:
        return images[..., None]
    rule = f"images must have shape (N, {', '.join(map(str, expected))}) for this model"
    remedy = _shape_remedy(images.shape, expected)
    raise ValueError(f"{rule}; got {images.shape}{'; ' if remedy else ''}{remedy}")


def array_remedy(images: object) -> str:
    """Return what makes an array of images of a value, for an error; empty where nothing does."""
    if isinstance(images, np.ndarray):
        return (
            "; scale pixels to 0..255 and convert them with .astype(numpy.uint8), other inputs "
            "with .astype(numpy.float32)"
        )
    if isinstance(images, Dataset):
        return "; give the data set's .images"
    if isinstance(images, (list, tuple)):
        return "; numpy.stack(images) makes one array of images of one shape"
    if isinstance(images, str):
        return "; pmt.datasets.load(path) reads files"
    if hasattr(images, "__array__"):
        return "; numpy.asarray(images) makes one"
    return ""


def _shape_remedy(found: tuple[int, ...], expected: tuple[int, int, int]) -> str:
    height, width, channels = expected
    if found == expected or (*found, 1) == expected:
        return "one image needs an axis before its own: images[None]"
    if found == (channels, height, width):
        return "channels come last, and one image needs an axis: images.transpose(1, 2, 0)[None]"
    if len(found) == 3 and found[1:] == (height, width):
        repeated = f"images[..., None].repeat({channels}, axis=3)"
        return f"the model takes {channels} channels, and gray images have one: {repeated}"
    if len(found) != 4:
        return ""
    if found[1] == channels != found[3]:
        return "channels come last: images.transpose(0, 2, 3, 1)"
    if found[3] != channels:
        has = counted(channels, "channel")
        return f"the model takes {has}, these have {found[3]}: use other images or another model"
    size = height if height == width else (height, width)
    return f"pmt.datasets.load(..., size={size}) resizes"
