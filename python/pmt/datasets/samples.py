"""Samples of other libraries become arrays of a data set: one conversion for every adapter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.datasets.array_checks import IMAGE_CHANNELS, input_array, label_array
from pmt.datasets.decoding import free_memory
from pmt.datasets.picture import Fit, fitted_picture, resized

Array = npt.NDArray[Any]

_AT_ONCE = 256  # samples that are stacked
_ROUNDING = 1e-5  # that float pixels may leave 0..1 by


@dataclass
class SampleReader:
    """Turns samples into arrays by one rule.

    Parameters
    ----------
    source : str
        Name of what gives the samples, for errors.
    features : bool
        Whether the inputs are not pixels.
    channels_first : bool, optional
        Whether arrays are (C, H, W) or (C, T); None takes tensors so, other arrays not.
    size : tuple of int, optional
        Height and width that images are resized to.
    remedy : str
        Way to give samples that are not pairs, for errors.
    """

    source: str
    features: bool = False
    channels_first: bool | None = None
    size: tuple[int, int] | None = None
    remedy: str = "give from_batches a generator of such pairs"

    def __post_init__(self) -> None:
        """Check that what is resized is an image, and note that no picture was seen."""
        if self.features and self.size is not None:
            raise ValueError(
                f"size={self.size}: images are resized, features are not; leave one of both out"
            )
        self._gray = self._colored = False

    def batch(self, x: object) -> Array:
        """Return a batch of inputs, channels last: pixels as uint8, others as they are."""
        is_tensor = hasattr(x, "detach")
        array = as_array(x)
        first = is_tensor if self.channels_first is None else self.channels_first
        if self.features:
            return input_array(np.moveaxis(array, 1, -1) if first and array.ndim > 2 else array)
        if first and array.ndim == 4:
            if array.shape[1] not in IMAGE_CHANNELS:
                raise ValueError(
                    f"{self.source}: samples have shape {array.shape[1:]}: those of torch must be "
                    "(C, H, W) with 1, 3 or 4 channels; give channels_first=False for (H, W, C), "
                    "or features=True for what is not an image"
                )
            array = np.moveaxis(array, 1, -1)
        return resized(input_array(self._pixels(array)), Fit(self.size))

    def _pixels(self, array: Array) -> Array:
        if array.dtype == np.uint8:
            return array
        if array.dtype.kind != "f":
            raise TypeError(
                f"{self.source}: images are {array.dtype}: must be uint8 (0..255) or float (0..1); "
                "give features=True for what is not an image"
            )
        low, high = float(array.min(initial=0.0)), float(array.max(initial=0.0))
        if not np.isfinite([low, high]).all():
            raise ValueError(
                f"{self.source}: float images hold values that are not finite: remove or replace "
                "them"
            )
        if not (low >= -_ROUNDING and high <= 1 + _ROUNDING):
            raise ValueError(
                f"{self.source}: float images must lie in 0..1, these in {low:.4g}..{high:.4g}: "
                "leave out transforms.Normalize, for the model normalizes pixels itself; or give "
                "features=True, where the numbers are what the network was trained on"
            )
        pixels: Array = np.rint(array * 255).clip(0, 255).astype(np.uint8)
        return pixels

    def batches(self, pairs: Iterable[object]) -> Iterator[tuple[Array, Array]]:
        """Yield each pair (x, y), a batch, as arrays."""
        return ((self.batch(x), labels_of(y)) for x, y in map(self.pair, pairs))

    def stacked(self, samples: Iterable[object], limit: int = 0) -> Iterator[tuple[Array, Array]]:
        """Yield pairs (input, label) in batches, at most `limit` pairs in all; 0 takes all."""
        pairs = (self.pair(sample) for sample in (islice(samples, limit) if limit else samples))
        while chunk := list(islice(pairs, _AT_ONCE)):
            inputs = [self._one(x) for x, _ in chunk]
            shapes = {one.shape for one in inputs}
            if len(shapes) > 1:
                raise _other_shapes(self.source, *sorted(shapes)[:2])
            yield np.concatenate(inputs), np.concatenate([labels_of([y]) for _, y in chunk])

    def _one(self, x: object) -> Array:
        pixels = self.single(x)
        if hasattr(x, "getbands"):
            if pixels.shape[3] > 1:
                self._colored = True
                return pixels
            self._gray = True
            return pixels.repeat(3, axis=3)
        return pixels

    def single(self, x: object) -> Array:
        """Return one input as a batch of one; a picture with its own channels."""
        if hasattr(x, "getbands"):
            return fitted_picture(x, Fit(self.size))[None]
        return self.batch(x[None] if hasattr(x, "detach") else np.asarray(x)[None])  # type: ignore[index]

    def in_true_channels(self, images: Array) -> Array:
        """Return images with one channel where every picture was gray."""
        return images[..., :1].copy() if self._gray and not self._colored else images

    def pair(self, sample: object) -> tuple[Any, Any]:
        """Return a sample's two parts, or raise an error."""
        if isinstance(sample, tuple | list) and len(sample) == 2:
            return sample[0], sample[1]
        count = f" of {len(sample)}" if isinstance(sample, tuple | list | dict) else ""
        raise TypeError(
            f"{self.source} gives a {type(sample).__name__}{count}: must be pairs (input, label); "
            f"{self.remedy}"
        )


def as_array(value: object) -> Array:
    """Return an array of a tensor, or of what NumPy reads."""
    found: Array = np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)
    return found


def labels_of(y: object) -> Array:
    """Return the labels of a batch, or raise the errors of `Dataset.from_arrays`."""
    if isinstance(y, list):
        y = [as_array(label) for label in y]
    return label_array(as_array(y))


def joined(
    reader: SampleReader, batches: Iterable[tuple[Array, Array]], limit: int
) -> tuple[Array, Array]:
    """Join batches of inputs, channels last, and labels; at most `limit` samples, 0 takes all."""
    parts: list[tuple[Array, Array]] = []
    count = size = 0
    for images, labels in batches:
        if labels.shape[:1] != (len(images),):
            raise ValueError(
                f"{reader.source}: a batch of {len(images)} inputs has labels of shape "
                f"{labels.shape}: must be ({len(images)},)"
            )
        parts.append((images, labels))
        _check_alike(reader.source, *zip(parts[0], parts[-1], strict=True))
        count, size = count + len(images), size + images.nbytes
        _refuse_too_large(reader.source, count, size)
        if limit and count >= limit:
            break
    if count == 0:
        raise ValueError(f"{reader.source} gives nothing: a data set holds at least one image")
    images, labels = (np.concatenate(rows)[: limit or None] for rows in zip(*parts, strict=True))
    images = reader.in_true_channels(images)
    images.flags.writeable = labels.flags.writeable = False
    return images, labels


def _check_alike(source: str, inputs: tuple[Array, Array], labels: tuple[Array, Array]) -> None:
    if inputs[0].shape[1:] != inputs[1].shape[1:]:
        raise _other_shapes(source, inputs[0].shape, inputs[1].shape)
    kinds = [_kind_of_labels(rows) for rows in labels]
    if kinds[0] != kinds[1]:
        raise ValueError(
            f"{source}: a sample has {kinds[1]}, and those before it {kinds[0]}: all must be alike"
        )


def _kind_of_labels(labels: Array) -> str:
    if labels.ndim == 2:
        return f"{labels.shape[1]} targets"
    return "no label" if labels.dtype == np.bool_ else "a class"


def _other_shapes(source: str, one: tuple[int, ...], other: tuple[int, ...]) -> ValueError:
    shapes = " and ".join("x".join(map(str, shape[1:])) for shape in (one, other))
    return ValueError(
        f"{source}: inputs of {shapes}: all must have one shape; give size=(height, width) for "
        "pictures, or a transform that resizes"
    )


def _refuse_too_large(source: str, count: int, size: int) -> None:
    free = free_memory()
    if free is not None and size > free:
        raise ValueError(
            f"{source}: {count:,} inputs take {size / 1e9:.1f} GB, and joining them as much again, "
            f"but {free / 1e9:.1f} GB of memory are free; take fewer with limit=N or smaller ones, "
            "or write them to a file and give numpy.load(file, mmap_mode='r') to "
            "Dataset.from_arrays"
        )
