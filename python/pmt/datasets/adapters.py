"""Data sets of other libraries: torch, Hugging Face datasets, and streams of samples or batches.

None of them is imported: what is read is told by its attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._util.arrays import Array
from pmt._util.checks import (
    checked_array,
    checked_flag,
    checked_range,
    checked_size,
    is_iterable,
    kind_of,
)
from pmt.datasets.arrays import (
    IMAGE_CHANNELS,
    as_float32,
    checked_class_names,
    input_array,
    label_array,
    names_in_memory,
)
from pmt.datasets.dataset import Dataset
from pmt.datasets.image_files import free_memory
from pmt.datasets.layouts import chosen_indices
from pmt.datasets.picture import Fit, fitted_picture, resized

_ROUNDING = 1e-5  # that float pixels may leave 0..1 by


@dataclass
class SampleReader:
    """Turns samples of a `source`, which errors name, into arrays by one rule.

    With `features` the inputs are not pixels. `channels_first` says whether arrays are (C, H, W) or
    (C, T); None takes tensors so, other arrays not. Images are resized to `size`, height and width.
    """

    source: str
    features: bool = False
    channels_first: bool | None = None
    size: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        """Check the flags and that only images are resized, and note that no picture was seen."""
        self.features = checked_flag("features", self.features)
        if self.channels_first is not None and not isinstance(self.channels_first, bool):
            raise TypeError(f"channels_first={self.channels_first!r} must be True, False or None")
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

    def single(self, x: object) -> Array:
        """Return one input as a batch of one; a picture in three channels."""
        if not hasattr(x, "getbands"):
            return self.batch(x[None] if hasattr(x, "detach") else as_array(x)[None])  # type: ignore[index]
        pixels = fitted_picture(x, Fit(self.size))[None]
        self._gray |= pixels.shape[3] == 1
        self._colored |= pixels.shape[3] > 1
        return pixels.repeat(3, axis=3) if pixels.shape[3] == 1 else pixels

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
            "give from_stream a generator of such pairs, (input, None) without labels"
        )


def as_array(value: object) -> Array:
    """Return an array of a tensor, or of a value that NumPy reads."""
    return checked_array(
        "a sample", value.detach().cpu().numpy() if hasattr(value, "detach") else value
    )


def labels_of(y: object) -> Array:
    """Return the labels of a batch, or raise the errors of `Dataset.from_arrays`."""
    if isinstance(y, list):
        y = [as_array(label) for label in y]
    return label_array(as_array(y))


def _collected(
    reader: SampleReader, pairs: Iterable[object], limit: int, class_names: Sequence[str] | None
) -> Dataset:
    """Join pairs, samples or batches, to a data set of at most `limit` samples; 0 takes all."""
    names = None if class_names is None else checked_class_names(class_names)
    images, labels = _joined(reader, (_rows(reader, pair) for pair in pairs), limit, names)
    if labels.dtype == _UNLABELED.dtype:
        return Dataset.unlabeled(images, reader.source)
    if labels.ndim == 2:
        outputs = names or tuple(map(str, range(labels.shape[1])))
        return Dataset(images, labels, outputs, reader.source)
    return Dataset.from_arrays(images, labels, class_names=names, name=reader.source)


def _joined(
    reader: SampleReader,
    batches: Iterable[tuple[Array, Array]],
    limit: int,
    names: tuple[str, ...] | None,
) -> tuple[Array, Array]:
    """Join batches of inputs, channels last, and labels.

    A label that no data set can hold is refused when it comes.
    """
    parts: list[tuple[Array, Array]] = []
    count = size = asked = 0
    for images, labels in batches:
        if labels.shape[:1] != (len(images),):
            raise ValueError(
                f"{reader.source}: a batch of {len(images)} inputs has labels of shape "
                f"{labels.shape}: must be ({len(images)},)"
            )
        parts.append((images, _checked_labels(reader.source, count, labels, names)))
        _check_alike(reader.source, *zip(parts[0], parts[-1], strict=True))
        count, size = count + len(images), size + images.nbytes
        if size > asked:  # what is free is asked for after each eighth more
            _refuse_too_large(reader.source, count, size)
            asked = size + size // 8
        if limit and count >= limit:
            break
    if count == 0:
        raise ValueError(f"{reader.source} gives nothing: a data set holds at least one image")
    images, labels = (np.concatenate(rows)[: limit or None] for rows in zip(*parts, strict=True))
    images = reader.in_true_channels(images)
    images.flags.writeable = labels.flags.writeable = False
    return images, labels


def _checked_labels(source: str, first: int, labels: Array, names: tuple[str, ...] | None) -> Array:
    """Return labels as int64, targets and missing labels as they are; or name the bad sample."""
    if labels.dtype.kind == "f":
        usable = np.isfinite(labels).all(axis=1)
        if not usable.all():
            raise ValueError(
                f"{source}: sample {first + usable.argmin()} has targets that are not finite: "
                "each must be a number"
            )
    if labels.dtype.kind not in "iu":
        return labels
    for place in (labels.argmin(), labels.argmax()):
        names_in_memory(f"{source}: sample {first + place}", labels[place, None], names)
    return labels.astype(np.int64)


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


def from_torch(
    data: Any,
    *,
    limit: int = 0,
    features: bool = False,
    channels_first: bool | None = None,
    size: int | tuple[int, int] | None = None,
    class_names: Sequence[str] | None = None,
    name: str = "torch",
) -> Dataset:
    """Collect a ``torch.utils.data`` Dataset or DataLoader in memory.

    It is gone through once: what a transform draws at random is drawn once.

    Parameters
    ----------
    data : torch.utils.data.Dataset or DataLoader
        A Dataset of pairs (input, label), or a DataLoader of such. Tensors of images are
        (C, H, W), uint8, or float in 0..1, as from ``torchvision.transforms.ToTensor``, which
        become ``round(255 x)``; they become (H, W, C). Arrays are (H, W, C), and pictures
        (Pillow) are read as files are.
    limit : int
        At most this many images: of a Dataset evenly at random and always the same, of a DataLoader
        or an IterableDataset the first. 0 takes all.
    features, channels_first : bool, optional
        As :func:`from_stream`: with `features`, tensors (C, T) or (C, H, W) become channels last.
    size : int or tuple of int, optional
        Side, or height and width, that images are resized to (needs Pillow).
    class_names : sequence of str, optional
        Names in the order of the labels; by default ``classes`` of the Dataset, as torchvision
        has them, else "0", "1", ...
    name : str
        Short name for reports.

    Returns
    -------
    Dataset
        The images; memory as in :func:`from_stream`.

    Raises
    ------
    TypeError, ValueError
        As :func:`from_stream`.
    """
    reader = SampleReader(name, features, channels_first, checked_size(size))
    limit = checked_range("limit", limit, 0)
    pairs = data if getattr(data, "batch_size", None) is not None else _samples(data, limit)
    found = _collected(reader, pairs, limit, class_names)
    return found if class_names is not None else _with_names(found, _classes(data))


def from_hugging_face(
    data: Any,
    *,
    image: str | None = None,
    label: str | None = None,
    limit: int = 0,
    features: bool = False,
    size: int | tuple[int, int] | None = None,
    class_names: Sequence[str] | None = None,
    name: str = "hugging-face",
) -> Dataset:
    """Collect a split of Hugging Face ``datasets`` in memory.

    Parameters
    ----------
    data : datasets.Dataset or IterableDataset
        A ``datasets.Dataset`` or ``IterableDataset``, one split: ``load_dataset(...)["train"]``.
    image, label : str, optional
        Columns of the inputs and of the labels; by default the ones of type Image and ClassLabel,
        else those called "image" or "img", and "label" or "labels".
    limit : int
        At most this many images: of a Dataset evenly at random and always the same, of an
        IterableDataset the first. 0 takes all.
    features : bool
        Whether the inputs are not pixels: numbers of shape (H, W, C), (T, C) or (F,).
    size : int or tuple of int, optional
        Side, or height and width, that images are resized to; without it all must have one size.
    class_names : sequence of str, optional
        Names in the order of the labels; by default those of the ClassLabel, else "0", "1", ...
    name : str
        Short name for reports.

    Returns
    -------
    Dataset
        The images; gray pictures among colored ones become colored. Memory as in
        :func:`from_stream`.

    Raises
    ------
    TypeError, ValueError
        As :func:`from_stream`, or if all splits are given, or a column is unknown.
    """
    if isinstance(data, dict):
        raise TypeError(
            f"data is a dict of splits ({', '.join(map(str, data))}): give one, "
            f"data[{next(iter(data), 'train')!r}]"
        )
    columns = getattr(data, "features", None) or {}
    kinds: dict[str, Any] = dict(columns if isinstance(columns, Mapping) else {})
    inputs = _column("image", image, kinds, "Image", ("image", "img"))
    labels = _column("label", label, kinds, "ClassLabel", ("label", "labels"))
    reader = SampleReader(name, features, False if features else None, checked_size(size))
    limit = checked_range("limit", limit, 0)
    rows = data
    if limit and hasattr(data, "select"):
        rows = data.select(chosen_indices(len(data), limit).tolist())
    pairs = ((_value(row[inputs], features), row[labels]) for row in rows)
    if class_names is None:
        class_names = getattr(kinds.get(labels), "names", None)
    return _collected(reader, pairs, limit, class_names)


def from_stream(
    source: Iterable[Any] | Callable[[], Iterable[Any]],
    *,
    limit: int = 0,
    features: bool = False,
    channels_first: bool | None = None,
    size: int | tuple[int, int] | None = None,
    class_names: Sequence[str] | None = None,
    name: str = "stream",
) -> Dataset:
    """Collect samples or batches of any iterable, a generator for instance, in memory.

    Parameters
    ----------
    source : iterable or callable
        Pairs (x, y), one sample or one batch each: an iterable, or a callable that returns one. A
        sample's y is an integer, a vector of float targets, or None; a batch's labels have shape
        (B,), its targets (B, K). Images are uint8, or float in 0..1, which become ``round(255
        x)``, of shape (H, W, C) or (B, H, W, C), as tensors with C first; gray ones may lack C.
        A sample may also be a picture (Pillow).
    limit : int
        Stop after this many samples; 0 continues to the end. A stream without an end needs it.
    features : bool
        Whether the inputs are not pixels (spectrograms, windows of sensors): float or int8, kept
        as :meth:`Dataset.from_arrays` keeps them, channels last.
    channels_first : bool, optional
        Whether a batch x is (B, C, H, W) or (B, C, T), which become channels last; by default
        tensors are, and arrays are not.
    size : int or tuple of int, optional
        Side, or height and width, that images are resized to (needs Pillow).
    class_names : sequence of str, optional
        Names in the order of the labels; by default "0", "1", ...
    name : str
        Short name for reports.

    Returns
    -------
    Dataset
        The samples, in the order in which they came. N x H x W x C bytes are held, four times as
        many of float32, and twice of that while they are joined; more than the free memory is
        refused. A stream that breaks off with an error gives nothing.

    Raises
    ------
    TypeError
        If anything but pairs came, or another dtype.
    ValueError
        If nothing came, shapes differ, labels, targets and None are mixed, a label is below 0 or
        beyond any model's or the names', a target is not finite, float images lie outside of 0..1
        (normalized ones), or more came than fits into memory.
    """
    reader = SampleReader(name, features, channels_first, checked_size(size))
    # A network of torch is callable, and no source.
    pairs = source() if callable(source) and not hasattr(source, "forward") else source
    if not is_iterable(pairs):
        raise TypeError(
            f"source is {kind_of(source)}: must be pairs (input, label), or a callable that "
            "returns an iterable of them"
        )
    return _collected(reader, pairs, checked_range("limit", limit, 0), class_names)


_UNLABELED = np.zeros(1, np.bool_)  # stands for None


def _rows(reader: SampleReader, pair: object) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return a sample or a batch of a stream as rows of inputs, and of labels or targets."""
    x, y = reader.pair(pair)
    if y is None:
        return reader.single(x), _UNLABELED
    if isinstance(y, list):
        return reader.batch(x), labels_of(y)
    labels = as_array(y)
    if labels.dtype.kind == "f" and labels.ndim <= 2:
        single = labels.ndim < 2
        targets = as_float32("y", labels.reshape(1, -1) if single else labels)
        return reader.single(x) if single else reader.batch(x), targets
    if labels.ndim == 0:
        return reader.single(x), labels_of(labels[None])
    return reader.batch(x), labels_of(labels)


def _samples(data: Any, limit: int) -> Iterator[Any]:
    """Yield the samples of a Dataset, of which some are chosen, or of an iterable."""
    if hasattr(type(data), "__iter__") or not hasattr(data, "__len__"):
        by_index = hasattr(data, "__getitem__") and getattr(data, "ndim", 1) > 0
        if not is_iterable(data) and not by_index:
            raise TypeError(
                f"data is {kind_of(data)}: must be a Dataset or DataLoader of torch, whose samples "
                "are pairs (input, label)"
            )
        return iter(data)
    return (data[index] for index in chosen_indices(len(data), limit).tolist())


def _classes(data: Any) -> Sequence[str] | None:
    """Return the names of the classes of a Dataset that may be wrapped, as torchvision has them."""
    while data is not None:
        classes = getattr(data, "classes", None)
        if isinstance(classes, list | tuple) and all(isinstance(name, str) for name in classes):
            return classes
        data = getattr(data, "dataset", None)
    return None


def _with_names(data: Dataset, names: Sequence[str] | None) -> Dataset:
    """Name the classes, unless a transform of the labels has made others of them."""
    if names is None or len(names) < len(data.class_names):
        return data
    return Dataset(data.images, data.labels, tuple(names), data.name)


def _column(
    argument: str, given: str | None, kinds: dict[str, Any], kind: str, usual: tuple[str, ...]
) -> str:
    if given is not None and (not kinds or given in kinds):
        return given
    typed = [name for name, feature in kinds.items() if type(feature).__name__ == kind]
    named = [name for name in usual if name in kinds]
    found = typed if len(typed) == 1 else named
    if given is not None or not found:
        problem = "is not a column" if given is not None else f"finds no column of type {kind}"
        raise ValueError(
            f"{argument} = {given!r}: {problem}; choose one of {', '.join(kinds) or 'the columns'}"
        )
    return found[0]


def _value(value: Any, features: bool) -> Any:
    return np.asarray(value, np.float32) if features and isinstance(value, list) else value
