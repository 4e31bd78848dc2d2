"""Errors about arguments of a wrong kind: each names the rule, and the remedy for the case."""

from __future__ import annotations

import numpy as np

from pmt.datasets import Dataset

__all__ = ["check_dataset", "check_images", "kind_of"]


def kind_of(value: object) -> str:
    """Return a value in a word or two, for an error: itself where that is short, else its type."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    short = isinstance(value, (str, bool, int, float, type(None)))
    return repr(value) if short else type(value).__name__


def check_dataset(argument: str, value: object) -> None:
    """Raise TypeError if the value is no data set."""
    if isinstance(value, Dataset):
        return
    remedy = "pmt.datasets.load(path) and pmt.datasets.bundled(split) return one"
    if isinstance(value, (np.ndarray, tuple, list)):
        remedy = "pmt.datasets.Dataset(images, labels, class_names, name) makes one of arrays"
    raise TypeError(f"{argument} is {kind_of(value)}: must be a pmt.datasets.Dataset; {remedy}")


def check_images(images: object, expected: tuple[int, int, int]) -> None:
    """Raise TypeError or ValueError if the value is no array of a model's images."""
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8:
        raise TypeError(
            f"images is {kind_of(images)}: must be a NumPy array of uint8 pixels 0..255"
            f"{_array_remedy(images)}"
        )
    if images.ndim != 4 or images.shape[1:] != expected:
        raise ValueError(_shape_error(images.shape, expected))


def _shape_error(found: tuple[int, ...], expected: tuple[int, int, int]) -> str:
    """Return the error for images of another shape than a model's (height, width, channels)."""
    rule = f"images must have shape (N, {', '.join(map(str, expected))}) for this model"
    remedy = _shape_remedy(found, expected)
    return f"{rule}; got {found}{'; ' if remedy else ''}{remedy}"


def _array_remedy(images: object) -> str:
    if isinstance(images, np.ndarray):
        return "; scale the pixels to 0..255 and convert them with .astype(numpy.uint8)"
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
    if found == expected:
        return "one image needs an axis before its own: images[None]"
    if channels == 1 and len(found) == 3 and found[1:] == (height, width):
        return "gray images need a last axis: images[..., None]"
    if found == (channels, height, width):
        return "channels come last, and one image needs an axis: images.transpose(1, 2, 0)[None]"
    if len(found) != 4:
        return ""
    if found[1] == channels != found[3]:
        return "channels come last: images.transpose(0, 2, 3, 1)"
    if found[3] != channels:
        has = "1 channel" if channels == 1 else f"{channels} channels"
        return f"the model takes {has}, these have {found[3]}: use other images or another model"
    size = height if height == width else (height, width)
    return f"pmt.datasets.load(..., size={size}) resizes"
