"""A data set in memory: images or other inputs, labels and the names of the classes."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from os import PathLike
from typing import Any, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from pmt._util.arrays import Array, Int64Array
from pmt._util.checks import (
    check_type,
    checked_array,
    checked_range,
    checked_size,
    is_iterable,
    kind_of,
    plain_number,
)
from pmt._util.text import counted
from pmt.datasets.arrays import (
    NO_LABEL,
    PIXELS,
    are_missing,
    checked_class_names,
    checked_groups,
    checked_images,
    checked_indices,
    checked_labels,
    chosen_rows,
    input_array,
    label_array,
    names_in_memory,
    target_array,
)
from pmt.datasets.picture import Fit, resized

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Images, or other inputs of a network, with labels, targets or neither.

    They are checked once, and immutable from then on. A writable array is copied, so that a later
    change of the caller's array changes nothing here; a read-only array is kept as it is.

    Parameters
    ----------
    images : ndarray of uint8, float32 or int8
        Shape (N, H, W, C), all at least 1. uint8: pixels, 0 (black) to 255. float32: inputs that
        are not pixels (spectrograms, windows of sensors), in the real numbers that the network was
        trained on. int8: the same, quantized as the network reads them.
    labels : ndarray of int or float32
        Integers, shape (N,), 0 to ``len(class_names) - 1``; kept as int64. Or float32 targets,
        shape (N, ``len(class_names)``), finite: one for each output of a model.
        :meth:`unlabeled` images have -1.
    class_names : tuple of str
        Name of every class, in the order of the labels; no name twice. ``()`` without labels.
    name : str
        Short name for reports.
    groups : ndarray of str, optional
        Shape (N,): images of one group, such as the frames of a video, are near copies, and only
        one side of what is held out of training has them. One whose text is empty is in no group.

    Raises
    ------
    TypeError
        If a dtype is wrong, or class names are not text.
    ValueError
        If a shape is wrong, a label is out of range, there is no image or no class, or a class
        name is given twice.

    Examples
    --------
    >>> import numpy as np
    >>> from pmt.datasets import Dataset
    >>> data = Dataset.from_arrays(np.zeros((6, 28, 28), np.uint8), [0, 1, 2, 0, 1, 2])
    >>> data
    Dataset('arrays', 6 images 28x28x1, 3 classes)
    >>> data[2:4] + data[[0, 5]]
    Dataset('arrays', 4 images 28x28x1, 3 classes)
    """

    images: Array
    labels: Array
    class_names: tuple[str, ...]
    name: str
    groups: npt.NDArray[np.str_] | None = None

    __array_ufunc__ = None  # an array refuses to be added, instead of taking this for one

    def __post_init__(self) -> None:
        """Check everything, then freeze the arrays."""
        images = checked_images(self.images)
        no_names = isinstance(self.class_names, tuple) and not self.class_names
        if no_names and are_missing(self.labels, len(images)):
            class_names: tuple[str, ...] = ()
            labels = self.labels
        else:
            class_names = checked_class_names(self.class_names)
            labels = checked_labels(self.labels, len(images), len(class_names))
        if not isinstance(self.name, str):
            raise TypeError(f"name={self.name!r} must be text")
        object.__setattr__(self, "images", _frozen(images))
        object.__setattr__(self, "labels", _frozen(labels))
        object.__setattr__(self, "class_names", class_names)
        if self.groups is not None:
            object.__setattr__(self, "groups", _frozen(checked_groups(self.groups, len(images))))

    @classmethod
    def from_arrays(
        cls,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        class_names: Sequence[str] | None = None,
        name: str = "arrays",
        groups: npt.ArrayLike | None = None,
    ) -> Dataset:
        """Make a data set of arrays.

        Parameters
        ----------
        x : array_like
            Images: uint8, shape (N, H, W, C), or (N, H, W) where they are gray, 0..255. Other
            inputs: float (kept as float32) or int8, see the class, of shape (N, H, W, C),
            (N, T, C) for windows of T steps, kept as (N, 1, T, C), or (N, F), kept as
            (N, 1, 1, F).
        y : array_like of int
            Integers, shape (N,) or (N, 1), from 0.
        class_names : sequence of str, optional
            Names in the order of the labels; by default "0", "1", ... up to the largest label.
        name : str
            Short name for reports.
        groups : array_like of int or str, optional
            Shape (N,): the group of each image, see the class.

        Returns
        -------
        Dataset
            With a copy of arrays that can be written to.

        Raises
        ------
        TypeError
            If an array has another dtype.
        ValueError
            If an array has another shape, channels stand first (N, C, H, W), a value is not
            finite, or labels do not fit images or names.
        """
        images, labels = input_array(x), label_array(y)
        if class_names is not None:
            class_names = checked_class_names(class_names)
        if labels.shape == (len(images),):
            class_names = names_in_memory("y", labels, class_names)
        found = None if groups is None else checked_array("groups", groups)
        return cls(images, labels, tuple(class_names or "0"), name, found)

    @classmethod
    def of(cls, data: DataLike, argument: str = "data") -> Dataset:
        """Return a data set as it is, and one of a pair of arrays ``(x, y)``.

        Parameters
        ----------
        data : Dataset or tuple of two arrays
            A data set, or a tuple of two as :meth:`from_arrays` takes them.
        argument : str
            The argument's name, for errors.

        Raises
        ------
        TypeError
            If `data` is something else.
        ValueError
            As :meth:`from_arrays`.
        """
        if isinstance(data, Dataset):
            return data
        if isinstance(data, tuple) and len(data) == 2:
            return cls.from_arrays(*data, name=argument)
        remedy = "pmt.datasets.from_torch, from_hugging_face and from_stream read other kinds"
        if isinstance(data, (str, PathLike)):
            remedy = f"pmt.datasets.load({str(data)!r}) reads files"
        elif isinstance(data, np.ndarray):
            remedy = "where no labels are needed, give Dataset.unlabeled(images)"
        raise TypeError(
            f"{argument} is {kind_of(data)}: must be a pmt.datasets.Dataset or a tuple (x, y) of "
            f"two arrays; {remedy}"
        )

    @classmethod
    def unlabeled(cls, images: Array, name: str = "images") -> Dataset:
        """Return images without labels, for training by a loss that needs none.

        Parameters
        ----------
        images : ndarray of uint8, float32 or int8
            Shape (N, H, W, C), see the class.
        name : str
            Short name for reports.

        Raises
        ------
        TypeError, ValueError
            As the class, of its images.
        """
        return cls(images, np.full(len(checked_images(images)), NO_LABEL, np.int64), (), name)

    @classmethod
    def with_targets(cls, x: npt.ArrayLike, y: npt.ArrayLike, *, name: str = "targets") -> Dataset:
        """Make a data set of inputs and float targets, for a loss that takes them.

        Parameters
        ----------
        x : array_like
            Images or other inputs, as :meth:`from_arrays` takes them.
        y : array_like of float
            Real numbers, shape (N,) or (N, ...): targets for each output of a model. Those of a
            feature map, (N, H, W, C), become (N, H x W x C), the order of a model's logits.
        name : str
            Short name for reports.

        Returns
        -------
        Dataset
            With targets of float32, named "0", "1", ...

        Raises
        ------
        TypeError
            If `x` has another dtype, or targets are not real numbers.
        ValueError
            If an array has another shape, there are targets for more or fewer images, or a value
            is not finite.
        """
        targets = target_array(y)
        return cls(input_array(x), targets, tuple(map(str, range(targets.shape[1]))), name)

    @property
    def has_pixels(self) -> bool:
        """Whether the inputs are images of 0..255, and not int8 or float32."""
        return self.images.dtype == PIXELS

    @property
    def has_targets(self) -> bool:
        """Whether the labels are float targets."""
        return self.labels.ndim == 2

    @property
    def is_labeled(self) -> bool:
        """Whether the images have labels or targets."""
        return bool(self.class_names)

    @property
    def has_class_labels(self) -> bool:
        """Whether every image has a class."""
        return self.is_labeled and not self.has_targets

    @cached_property
    def _checksums(self) -> tuple[int, int, int]:
        images = np.ascontiguousarray(self.images, self.images.dtype.newbyteorder("<")).data
        labels = zlib.crc32(self.labels.astype("<f4" if self.has_targets else "<i8").tobytes())
        return zlib.crc32(images), labels, zlib.crc32(images, labels)

    @cached_property
    def _digests(self) -> npt.NDArray[np.uint64]:
        images = np.ascontiguousarray(self.images).reshape(len(self), -1).view(np.uint8)
        digests = b"".join(blake2b(image.data, digest_size=8).digest() for image in images)
        return np.frombuffer(digests, np.uint64)

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.images)

    def __repr__(self) -> str:
        """Return one line: name, number and shape of the images, number of classes."""
        shape = "x".join(map(str, self.images.shape[1:]))
        kind = "image" if self.has_pixels else f"{self.images.dtype} input"
        kinds = ("target", "targets") if self.has_targets else ("class", "classes")
        classes = counted(len(self.class_names), *kinds) if self.is_labeled else "no labels"
        return f"Dataset({self.name!r}, {counted(len(self), kind)} {shape}, {classes})"

    def __iter__(self) -> Iterator[tuple[Array, Any]]:
        """Iterate over pairs of an image, shape (H, W, C), and its label or targets."""
        return ((image, self._label(i)) for i, image in enumerate(self.images))

    def _label(self, index: int | np.integer) -> Any:
        return self.labels[index] if self.has_targets else int(self.labels[index])

    @overload
    def __getitem__(self, index: int) -> tuple[Array, Any]: ...

    @overload
    def __getitem__(self, index: slice | npt.ArrayLike) -> Dataset: ...

    def __getitem__(self, index: int | slice | npt.ArrayLike) -> tuple[Array, Any] | Dataset:
        """Return an image with its label, or the data set of a slice, of some indices or a mask.

        Instead of a label there may be targets, float32 of shape (classes,). A slice copies
        nothing; an index below 0 counts from the end; indices are those of :meth:`subset`; a mask,
        Boolean of shape (N,), takes the images where it is true.

        Raises
        ------
        IndexError
            If no image has this index.
        TypeError, ValueError
            If the slice or mask is empty or too short, or as :meth:`subset`.
        """
        if isinstance(index, slice):
            if not len(range(len(self))[index]):
                raise ValueError(
                    f"{index} of {counted(len(self), 'image')} is empty: a data set holds at least "
                    "one image"
                )
            return self._of_rows(index)
        position = plain_number(index)
        if not isinstance(position, int) or isinstance(position, bool):
            return self.subset(self._where(index))
        if not -len(self) <= position < len(self):
            raise IndexError(
                f"index={position} must be {-len(self)} to {len(self) - 1} with "
                f"{counted(len(self), 'image')}"
            )
        return self.images[position], self._label(position)

    def _where(self, index: npt.ArrayLike) -> npt.ArrayLike:
        """Return the indices that a mask stands for; indices as they are."""
        mask = checked_array("index", index)
        if mask.dtype != np.bool_:
            return index
        if mask.shape != (len(self),):
            raise ValueError(
                f"mask has shape {mask.shape}: must be ({len(self)},), one Boolean an image"
            )
        return np.flatnonzero(mask)

    def __add__(self, other: Dataset) -> Dataset:
        """Return the images of this data set followed by those of another one."""
        if not isinstance(other, Dataset):
            return NotImplemented
        return concatenate((self, other))

    @property
    def pixel_size(self) -> tuple[int, int] | None:
        """Height and width of the images; None where the inputs are not pixels."""
        return self.images.shape[1:3] if self.has_pixels else None

    def resize(self, height: int, width: int) -> Dataset:
        """Return the images stretched to another size (bilinear, smoothed; needs Pillow).

        Parameters
        ----------
        height, width : int
            New size in pixels, each at least 1.

        Raises
        ------
        TypeError
            If a size is not an integer, or the inputs are not pixels.
        ValueError
            If a size is below 1, or the images have more than 4 channels.
        ModuleNotFoundError
            If Pillow is not installed.
        """
        size = checked_size((height, width))
        if not self.has_pixels:
            raise TypeError(
                f"data set {self.name!r} holds {self.images.dtype} inputs: only images of uint8 "
                "pixels are resized; resample the arrays before"
            )
        return replace(self, images=resized(self.images, Fit(size), f"data set {self.name!r}"))

    def subset(self, indices: npt.ArrayLike) -> Dataset:
        """Return the images at `indices`, in that order.

        Parameters
        ----------
        indices : array_like of int
            Integers, shape (M,), 0 to N - 1, M at least 1; repeats are allowed.

        Raises
        ------
        TypeError
            If `indices` are not integers (a Boolean mask, for instance).
        ValueError
            If an index is out of range, the shape is wrong, or there is no index at all.
        """
        chosen = checked_indices(indices, len(self))
        images, labels = (chosen_rows(array, chosen) for array in (self.images, self.labels))
        groups = None if self.groups is None else self.groups[chosen]
        return replace(self, images=images, labels=labels, groups=groups)

    def take(self, n: int) -> Dataset:
        """Return the first `n` images, 1 to N, without copying them.

        Raises
        ------
        TypeError
            If `n` is not an integer.
        ValueError
            If `n` is below 1 or above N.
        """
        return self._of_rows(slice(checked_range("n", n, 1, len(self))))

    def _of_rows(self, rows: slice) -> Dataset:
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, images=self.images[rows], labels=self.labels[rows], groups=groups)

    def shuffled(self, seed: int) -> Dataset:
        """Return all images in a random order, which depends only on `seed` (0 or more) and N."""
        return self.subset(self._permutation(seed))

    def split(self, fraction: float, seed: int) -> tuple[Dataset, Dataset]:
        """Split the images at random into two data sets.

        Parameters
        ----------
        fraction : float
            Share of the first part, above 0 and below 1; rounded to whole images.
        seed : int
            Integer, 0 or more.

        Returns
        -------
        tuple of Dataset
            The first has ``round(fraction * N)`` images, the second the others.

        Raises
        ------
        TypeError
            If `seed` is not an integer.
        ValueError
            If `fraction` is out of range or leaves one part empty, or `seed` is negative.
        """
        check_type("fraction", fraction, (int, float, np.floating), "a number above 0 and below 1")
        if not 0.0 < fraction < 1.0:
            raise ValueError(f"fraction={fraction} must be above 0 and below 1")
        order = self._permutation(seed)
        count = round(fraction * len(self))
        if count in (0, len(self)):
            raise ValueError(
                f"fraction={fraction} leaves one part of {counted(len(self), 'image')} empty; "
                "choose one nearer 0.5 or take more images"
            )
        return self.subset(order[:count]), self.subset(order[count:])

    def _permutation(self, seed: int) -> Int64Array:
        generator = np.random.Generator(np.random.PCG64(checked_range("seed", seed, 0)))
        return generator.permutation(len(self))


# A data set where one is taken, or a pair of arrays (x, y) that stands for it.
DataLike = Dataset | tuple[npt.ArrayLike, npt.ArrayLike]


def paired(data: DataLike | npt.ArrayLike, labels: npt.ArrayLike | None, argument: str) -> DataLike:
    """Return data that may come as two arguments, images and labels, as one.

    A TypeError is raised if labels are given, and the argument `argument` has its own.
    """
    if labels is None:
        return cast(DataLike, data)  # whoever reads it refuses what is neither
    if isinstance(data, (Dataset, tuple)):
        raise TypeError(f"{argument} has labels of its own: leave the argument labels out")
    return data, labels


def concatenate(parts: Iterable[Dataset]) -> Dataset:
    """Join data sets, one after the other.

    Parameters
    ----------
    parts : iterable of Dataset
        At least one. Their inputs have the same shape and dtype, and their classes the same names;
        if one list of names continues another, the longest is taken.

    Returns
    -------
    Dataset
        With the name of the first, and a copy of all images.

    Raises
    ------
    ValueError
        If there is no data set, or two do not go together.
    """
    if not is_iterable(parts) or isinstance(parts, str | Dataset):
        raise TypeError(f"parts is {kind_of(parts)}: must be a list of data sets")
    found = list(parts)
    for part in found:
        check_type("a part", part, Dataset, "a pmt.datasets.Dataset")
    if not found:
        raise ValueError("parts is empty: give at least one data set")
    names = max((part.class_names for part in found), key=len)
    for part in found:
        _check_alike(found[0], part, names)
    images = np.concatenate([part.images for part in found])
    labels = np.concatenate([part.labels for part in found])
    images.flags.writeable = labels.flags.writeable = False
    return Dataset(images, labels, names, found[0].name, _joined_groups(found))


def _joined_groups(parts: Sequence[Dataset]) -> npt.NDArray[np.str_] | None:
    if all(part.groups is None for part in parts):
        return None
    none = (np.zeros(len(part), "U1") if part.groups is None else part.groups for part in parts)
    return np.concatenate(list(none))


def _kind_of_labels(data: Dataset) -> str:
    if data.has_targets:
        return f"{data.labels.shape[1]} targets per image"
    return "class labels" if data.is_labeled else "no labels"


def _check_alike(first: Dataset, part: Dataset, names: tuple[str, ...]) -> None:
    kinds = [f"{d.images.dtype} {'x'.join(map(str, d.images.shape[1:]))}" for d in (first, part)]
    if kinds[0] != kinds[1]:
        raise ValueError(
            f"{first.name!r} holds {kinds[0]}, {part.name!r} {kinds[1]}: joined data sets hold one "
            "shape and dtype; data.resize(height, width) changes the size of images"
        )
    kinds = [_kind_of_labels(data) for data in (first, part)]
    if kinds[0] != kinds[1]:
        raise ValueError(
            f"{first.name!r} has {kinds[0]}, {part.name!r} {kinds[1]}: joined data sets have one "
            "kind of labels; Dataset.unlabeled(data.images) drops those of one"
        )
    for label, (name, own) in enumerate(zip(names, part.class_names, strict=False)):
        if name != own:
            raise ValueError(
                f"class {label} is {own!r} in {part.name!r} and {name!r} elsewhere: joined data "
                "sets name the classes alike; load them with one class_names=[...]"
            )


def _frozen(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    if array.flags.writeable:
        array = array.copy()
        array.flags.writeable = False
    return array


def checksum(data: Dataset) -> int:
    """Return the CRC-32 of the labels (int64, little-endian) followed by the images."""
    return data._checksums[2]


def checksums(data: Dataset) -> tuple[int, int]:
    """Return the CRC-32 of the images, and that of the labels (int64 or float32, little-endian)."""
    return data._checksums[:2]


def image_digests(data: Dataset) -> npt.NDArray[np.uint64]:
    """Return a 64-bit digest of each image, shape (N,): equal where all values are equal."""
    return data._digests
