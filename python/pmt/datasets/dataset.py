"""A data set in memory: images, labels and the names of the classes."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pmt._util.checks import checked_integer, checked_seed

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Labeled images, checked once and immutable from then on.

    A writable array is copied, so that a later change of the caller's array changes nothing here;
    a read-only array is kept as it is.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C), N, H, W, C all at least 1, 0 (black) to 255.
    labels
        Integers, shape (N,), 0 to ``len(class_names) - 1``; kept as int64.
    class_names
        Name of every class, in the order of the labels; no name twice.
    name
        Short name for reports.

    Raises
    ------
    TypeError
        Wrong dtype, or class names that are not text.
    ValueError
        Wrong shape, a label out of range, no image, no class, or a class name given twice.
    """

    images: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.int64]
    class_names: tuple[str, ...]
    name: str

    def __post_init__(self) -> None:
        """Check everything, then freeze the arrays."""
        class_names = _checked_class_names(self.class_names)
        images = _checked_images(self.images)
        labels = _checked_labels(self.labels, len(images), len(class_names))
        if not isinstance(self.name, str):
            raise TypeError(f"name = {self.name!r}: must be text")
        object.__setattr__(self, "images", _frozen(images))
        object.__setattr__(self, "labels", _frozen(labels))
        object.__setattr__(self, "class_names", class_names)

    @cached_property
    def _checksums(self) -> tuple[int, int]:
        images = zlib.crc32(np.ascontiguousarray(self.images).data)
        return images, zlib.crc32(self.labels.astype("<i8").tobytes())

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.images)

    def __repr__(self) -> str:
        """Return one line: name, number and shape of the images, number of classes."""
        height, width, channels = self.images.shape[1:]
        return (
            f"Dataset({self.name!r}, {len(self)} images {height}x{width}x{channels}, "
            f"{len(self.class_names)} classes)"
        )

    def subset(self, indices: npt.ArrayLike) -> Dataset:
        """Return the images at `indices`, in that order.

        Parameters
        ----------
        indices
            Integers, shape (M,), 0 to N - 1, M at least 1; repeats are allowed.

        Raises
        ------
        TypeError
            `indices` are not integers (a Boolean mask, for instance).
        ValueError
            An index out of range, wrong shape, or no index at all.
        """
        chosen = checked_indices(indices, len(self))
        images, labels = self.images[chosen], self.labels[chosen]
        # Fresh copies nobody else holds: freezing them here spares Dataset a second copy.
        images.flags.writeable = labels.flags.writeable = False
        return replace(self, images=images, labels=labels)

    def take(self, n: int) -> Dataset:
        """Return the first `n` images, 1 to N, without copying them.

        Raises
        ------
        TypeError
            `n` is not an integer.
        ValueError
            `n` is below 1 or above N.
        """
        count = checked_integer("n", n)
        if not 1 <= count <= len(self):
            raise ValueError(f"n = {count}: must be 1 to {len(self)}, the number of images")
        return replace(self, images=self.images[:count], labels=self.labels[:count])

    def shuffled(self, seed: int) -> Dataset:
        """Return all images in a random order, which depends on `seed` (0 or more) and N alone."""
        return self.subset(self._permutation(seed))

    def split(self, fraction: float, seed: int) -> tuple[Dataset, Dataset]:
        """Part the images at random into two data sets.

        Parameters
        ----------
        fraction
            Share of the first part, above 0 and below 1; rounded to whole images.
        seed
            Integer, 0 or more.

        Returns
        -------
        tuple of Dataset
            The first has ``round(fraction * N)`` images, the second the others.

        Raises
        ------
        TypeError
            `seed` is not an integer.
        ValueError
            `fraction` is out of range or leaves one part empty, or `seed` is negative.
        """
        if not 0.0 < fraction < 1.0:
            raise ValueError(f"fraction = {fraction}: must be above 0 and below 1")
        order = self._permutation(seed)
        count = round(fraction * len(self))
        if count in (0, len(self)):
            raise ValueError(
                f"fraction = {fraction}: leaves one part of {len(self)} images empty; "
                "choose one nearer 0.5 or take more images"
            )
        return self.subset(order[:count]), self.subset(order[count:])

    def _permutation(self, seed: int) -> npt.NDArray[np.int64]:
        generator = np.random.Generator(np.random.PCG64(checked_seed(seed)))
        return generator.permutation(len(self))


def checked_indices(indices: npt.ArrayLike, count: int) -> npt.NDArray[np.integer]:
    """Return `indices` of a data set of `count` images as an array of shape (M,), M at least 1.

    Raises
    ------
    TypeError
        They are not integers (a Boolean mask, for instance).
    ValueError
        One is out of range, the shape is wrong, or there is none at all.
    """
    chosen = np.asarray(indices)
    if chosen.size == 0:
        raise ValueError("indices is empty: a data set holds at least one image")
    if chosen.dtype.kind not in "iu":
        raise TypeError(
            f"indices is {chosen.dtype}: must be integers; "
            "turn a Boolean mask into them with numpy.flatnonzero(mask)"
        )
    if chosen.ndim != 1:
        raise ValueError(f"indices has shape {chosen.shape}: must be one-dimensional")
    if chosen.min() < 0 or chosen.max() >= count:
        worst = chosen.min() if chosen.min() < 0 else chosen.max()
        raise ValueError(f"indices holds {worst}: must be 0 to {count - 1}")
    return chosen


def _checked_images(images: object) -> npt.NDArray[np.uint8]:
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8:
        found = images.dtype if isinstance(images, np.ndarray) else type(images).__name__
        raise TypeError(
            f"images is {found}: must be a uint8 array; scale float pixels to 0..255 and convert "
            "with .astype(numpy.uint8)"
        )
    if images.ndim != 4 or 0 in images.shape:
        raise ValueError(
            f"images has shape {images.shape}: must be (N, H, W, C) with at least one image; "
            "put the channels last, and give gray images a last axis with images[..., None]"
        )
    return images


def _checked_labels(labels: object, images: int, classes: int) -> npt.NDArray[np.int64]:
    if not isinstance(labels, np.ndarray) or labels.dtype.kind not in "iu":
        found = labels.dtype if isinstance(labels, np.ndarray) else type(labels).__name__
        raise TypeError(f"labels is {found}: must be an integer array")
    if labels.shape != (images,):
        raise ValueError(
            f"labels has shape {labels.shape}: must be ({images},), one label an image"
        )
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise ValueError(
            f"labels holds {low if low < 0 else high}: must be 0 to {classes - 1} "
            f"with {classes} class names"
        )
    return labels.astype(np.int64, copy=False)


def _checked_class_names(class_names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(class_names, str):
        raise TypeError(f"class_names = {class_names!r}: must be a sequence of names, not one text")
    checked = tuple(class_names)
    if not checked:
        raise ValueError("class_names is empty: at least one class is needed")
    seen = set()
    for name in checked:
        if not isinstance(name, str):
            raise TypeError(f"class_names holds {name!r}: every name must be text")
        if not name.strip() or name in seen:
            raise ValueError(f"class_names holds {name!r} twice or blank: names must differ")
        seen.add(name)
    return checked


def _frozen(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    if array.flags.writeable:
        array = array.copy()
        array.flags.writeable = False
    return array


def checksum(data: Dataset) -> int:
    """Return the CRC-32 of the labels (int64, little-endian) followed by the images."""
    images, labels = checksums(data)
    return _crc_of_both(labels, images, data.images.nbytes)


def checksums(data: Dataset) -> tuple[int, int]:
    """Return the CRC-32 of the images, and that of the labels (int64, little-endian)."""
    return data._checksums


def _crc_of_both(first: int, second: int, length: int) -> int:
    """Return the CRC-32 of two parts from theirs; the second is so many bytes long."""
    # Each further bit multiplies the first part's remainder by x.
    factor, power = 1 << 31, 1 << 30  # 1 and x, the highest power in the lowest bit
    for digit in reversed(bin(8 * length)[2:]):
        if digit == "1":
            factor = _product(factor, power)
        power = _product(power, power)
    return _product(factor, first) ^ second


def _product(a: int, b: int) -> int:
    """Multiply two remainders modulo the polynomial of CRC-32."""
    product = 0
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            product ^= b
        b = b >> 1 ^ (0xEDB88320 if b & 1 else 0)
    return product
