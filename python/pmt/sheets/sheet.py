"""Contact sheets of data sets and of corruptions: rows of images with a label, under headings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from pmt._util.arrays import Uint8Array
from pmt._util.checks import (
    SplitName,
    check_callable,
    check_type,
    checked_names,
    checked_path,
    checked_range,
    kind_of,
)
from pmt._util.text import counted
from pmt.corruptions import SEVERITIES, split_seed
from pmt.corruptions import names as known_names
from pmt.corruptions.apply import unavailable
from pmt.corruptions.catalog import Constants
from pmt.datasets.cifar import Labels, has_cifar
from pmt.datasets.corrupted_arrays import find_corrupted, read_corrupted, stored_names
from pmt.datasets.dataset import Dataset
from pmt.errors import OptionError
from pmt.model import Model
from pmt.model.model import check_model
from pmt.protocol import load_clean
from pmt.protocol.data_source import BUNDLED, DataSource, ImagePool

Image = Uint8Array


@dataclass(frozen=True)
class Row:
    """A label and its images.

    Parameters
    ----------
    label
        Text before the images.
    tiles
        uint8 of shape (H, W, 1) or (H, W, 3); None leaves a place empty.
    note
        A second, smaller line under the label.
    """

    label: str
    tiles: Sequence[Image | None]
    note: str = ""


@dataclass(frozen=True)
class Group:
    """Columns that belong together: a title over them and a heading for each."""

    title: str
    headings: tuple[str, ...]


@dataclass(frozen=True)
class Sheet:
    """A whole contact sheet.

    Parameters
    ----------
    title
        First line of the picture.
    rows
        At least one, of as many tiles at most as the groups have columns.
    groups
        At least one; their headings, blank or not, say how many columns there are.
    left_out
        Corruptions that could not be drawn, each with what it needs.
    """

    title: str
    rows: tuple[Row, ...]
    groups: tuple[Group, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> int:
        """Number of columns of all groups."""
        return sum(len(group.headings) for group in self.groups)

    @property
    def tile_shape(self) -> tuple[int, int]:
        """Largest height and largest width of the tiles, in pixels."""
        shapes = [tile.shape for row in self.rows for tile in row.tiles if tile is not None]
        return max(shape[0] for shape in shapes), max(shape[1] for shape in shapes)


Corrupted = Callable[[str, int], Sequence[Image]]


def checked_severities(severities: object) -> tuple[int, ...]:
    """Return severities of corruptions as a tuple, or raise a TypeError or ValueError."""
    if not isinstance(severities, Sequence) or isinstance(severities, str):
        raise TypeError(f"severities={severities!r} must be a sequence of 1..5")
    return tuple(checked_range("severities", one, 1, 5) for one in severities)


def corruption_sheet(
    corrupted: Corrupted,
    names: Sequence[str],
    severities: Sequence[int],
    *,
    captions: Sequence[str],
    originals: Sequence[Image] | None = None,
    title: str = "",
    progress: Callable[[int], None] | None = None,
) -> Sheet:
    """Lay out images at every corruption and severity.

    Parameters
    ----------
    corrupted
        Called with a corruption and a severity; returns the corrupted images.
    names
        Corruptions, one row each.
    severities
        Columns.
    captions
        One for each image.
    originals
        The clean images, for a first column; left out where there are none.
    title
        First line of the picture.
    progress
        Called with the number of calls of `corrupted` so far.
    """
    check_callable("progress", progress)
    if not callable(corrupted):
        raise TypeError(
            f"corrupted is {kind_of(corrupted)}: must be a callable corrupted(name, severity)"
        )
    names, captions = checked_names("names", names), checked_names("captions", captions)
    severities = checked_severities(severities)
    rows = []
    for number, name in enumerate(names):
        columns = [] if originals is None else [originals]
        for done, severity in enumerate(severities, 1):
            columns.append(corrupted(name, severity))
            if progress is not None:
                progress(number * len(severities) + done)
        by_image = zip(*columns, strict=True)
        rows.append(Row(name, [tile for tiles in by_image for tile in tiles]))
    clean = () if originals is None else ("original",)
    headings = (*clean, *(f"severity {severity}" for severity in severities))
    groups = tuple(Group(caption, headings) for caption in captions)
    return Sheet(title, tuple(rows), groups)


def dataset_sheet(dataset: Dataset, *, images: int = 10, title: str = "") -> Sheet:
    """Lay out the first images of every class.

    Parameters
    ----------
    dataset
        Its class names are the labels of the rows; without class labels it is one row.
    images
        Images of a class, 1 or more.
    title
        By default the name of the data set and its number of images.

    Raises
    ------
    TypeError, ValueError
        If `images` is not an integer, or below 1, or the data set holds no images.
    """
    count = checked_range("images", images, 1)
    dataset = Dataset.of(dataset, "dataset")
    _check_pixels(dataset)
    rows = []
    classes = enumerate(dataset.class_names) if dataset.has_class_labels else [(None, "images")]
    for label, name in classes:
        chosen = np.ones(len(dataset), bool) if label is None else dataset.labels == label
        members = np.flatnonzero(chosen)
        tiles: list[Image] = [dataset.images[index] for index in members[:count]]
        rows.append(Row(name, tiles, counted(len(members), "image")))
    columns = max(len(row.tiles) for row in rows)
    height, width, channels = dataset.images.shape[1:]
    default = f"{dataset.name}: {counted(len(dataset), 'image')} {height}x{width}x{channels}"
    return Sheet(title or default, tuple(rows), (Group("", ("",) * columns),))


def _check_pixels(dataset: Dataset) -> None:
    if not dataset.has_pixels:
        raise TypeError(
            f"data set {dataset.name!r} holds {dataset.images.dtype} inputs: a sheet shows images "
            "of uint8 pixels; plot these with another program"
        )


def stage_sheet(seen: Mapping[str, Dataset], model: Model, *, title: str = "") -> Sheet:
    """Lay out images as they are and, below, as a network reads them behind its input stage.

    Parameters
    ----------
    seen
        Images of the model's :attr:`pmt.Model.image_shape` by the label of their row.
    model
        A model for pixels.
    title
        First line of the picture; the filters follow.

    Raises
    ------
    TypeError, ValueError
        If images are not pixels, or do not fit the model.
    """
    check_model(model)
    check_type("seen", seen, Mapping, "a dict of data sets by the label of their row")
    for label, data in seen.items():
        check_type(f"seen[{label!r}]", data, Dataset, "a pmt.datasets.Dataset")
        _check_pixels(data)
    if not seen:
        raise ValueError("seen={} must hold the images of a row or more")
    stage = model.input_stage
    filters = "no input stage" if stage is None else str(stage)
    rows = []
    for label, data in seen.items():
        rows.append(Row(label, list(data.images)))
        rows.append(Row("network input", _pixels_read(model, data.images), filters))
    columns = max(len(row.tiles) for row in rows)
    whole = f"{title}, behind {filters}".removeprefix(", ")
    return Sheet(whole, tuple(rows), (Group("", ("",) * columns),))


def _pixels_read(model: Model, images: Uint8Array) -> list[Image]:
    """Return the network's input as pixels: of each value, the darkest that becomes it."""
    plain = model if model.input_stage is None else model.with_input_stage(None)
    ramp = np.arange(256, dtype=np.uint8)[:, np.newaxis, np.newaxis, np.newaxis]
    values = plain.prepare(np.broadcast_to(ramp, (256, *model.input_shape)))[:, 0, 0]
    inputs = model.prepare(images)
    pixels = np.empty(inputs.shape, np.uint8)
    for channel in range(inputs.shape[3]):
        places = np.searchsorted(values[:, channel], inputs[..., channel])
        pixels[..., channel] = np.minimum(places, 255)
    return list(pixels)


_BESIDE = 8  # images as they are and behind an input stage


def make_sheet(
    data: str,
    *,
    corruptions: tuple[str, ...] | Literal["all"] | None = None,
    severities: tuple[int, ...] = SEVERITIES,
    split: SplitName = "test",
    images: int | None = None,
    index: tuple[int | str, ...] | None = None,
    seed: int = 0,
    size: int | None = None,
    labels: Labels = "fine",
    constants: Constants = "cifar10",
    model: Model | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Sheet:
    """Lay out a data set, or its images corrupted, or as a model's input stage changes them.

    Parameters
    ----------
    data : str
        Data set in any layout of :func:`pmt.datasets.load`, ``"bundled"``, or a folder of arrays
        as CIFAR-10-C.
    corruptions : tuple of str, "all" or None
        Corruptions, a row for each; None shows the clean images, a row for each class. ``"all"``
        leaves out ``frost`` where its photographs are missing.
    severities : tuple of int
        Severities 1..5, a column for each.
    split : {"train", "test"}
        Part of the data set.
    images : int, optional
        Images of each class, by default 10; with corruptions images in all, by default 1.
    index : tuple of int, optional
        With corruptions, which images of the split, in place of the first ones.
    seed : int
        Seed of the corruptions, 0 or more: the test split is corrupted with the next one.
    size : int, optional
        Height and width in pixels that images are resized to first; by default their own.
    labels : {"fine", "coarse"}
        Labels of CIFAR-100.
    constants : {"cifar10", "imagenet"}
        Constants of the corruptions.
    model : Model, optional
        Show images of the split, by default 8, clean or with each corruption, as they are
        and as this model's network reads them behind its input stage.
    progress : callable, optional
        Called as ``progress(done, tiles, corruption)`` after each corrupted tile.

    Returns
    -------
    Sheet
        For :func:`pmt.plots.plot_sheet`.

    Raises
    ------
    FileNotFoundError, ValueError, ImportError
        If there are a model and an index or a size, or an index is not that of an image; as
        :func:`pmt.datasets.load` and :func:`pmt.corruptions.corrupt`.
    """
    checked_path("data", data)
    if corruptions is not None and corruptions != "all":
        corruptions = checked_names("corruptions", corruptions)
    severities = checked_severities(severities)
    if images is not None:
        images = checked_range("images", images, 1, 2**31 - 1)
    check_callable("progress", progress)
    if model is not None:
        check_model(model)
        for name, value in (("index", index), ("size", size)):
            if value is not None:
                raise OptionError("model", " and ", name, " exclude each other: leave one out")
    path, stored = Path(data), None
    if corruptions and data != BUNDLED:
        stored = find_corrupted(path, split)
    source = _Source(path, None, stored, corruptions or (), split, seed, labels, constants)
    if model is not None:
        return _stage_sheet(source, data, model, severities, images or _BESIDE, progress)
    if stored is not None and size is not None:
        raise OptionError("size", f" {size}: {stored} holds corrupted arrays; leave it")
    clean = None
    if stored is None or has_cifar(path):
        clean = load_clean(data, split=split, size=size, labels=labels)
    if corruptions is not None:
        source = replace(source, clean=clean)
        return _corruption_sheet(source, severities, images, index, progress)
    assert clean is not None
    height, width, channels = clean.images.shape[1:]
    count = counted(len(clean), f"{split} image")
    title = f"{clean.name}: {count}, {height}x{width}x{channels}"
    return dataset_sheet(clean, images=images or 10, title=title)


def _stage_sheet(
    source: _Source,
    data: str,
    model: Model,
    severities: Sequence[int],
    images: int,
    progress: Callable[[int, int, str], None] | None,
) -> Sheet:
    cases = [(name, severity) for name in source.names() for severity in severities] or [("", 0)]
    seen = {}
    for name, severity in cases:
        of = DataSource(data, name, severity, source.seed, source.labels, source.constants)
        label = f"{name} {severity}" if name else "images"
        seen[label] = of.load(source.split, model, limit=images)
        if progress is not None:
            progress(len(seen), len(cases), name)
    sheet = stage_sheet(seen, model, title=f"{data}, {source.split} images")
    return replace(sheet, left_out=source.left_out())


def _corruption_sheet(
    source: _Source,
    severities: Sequence[int],
    images: int | None,
    index: Sequence[int | str] | None,
    progress: Callable[[int, int, str], None] | None,
) -> Sheet:
    names = source.names()
    labeled = source.clean or source.corrupted(names[0], severities[0])
    indices = _chosen_images(images, index, len(source.clean or source.corrupted(names[0], 1)))
    classes = [
        labeled.class_names[int(labeled.labels[index])] if labeled.has_class_labels else "image"
        for index in indices
    ]
    number = "image" if len(indices) == 1 else "images"
    title = f"{source.title}, {source.split} {number} {', '.join(map(str, indices))}"
    captions = [f"{index}: {name}" for index, name in zip(indices, classes, strict=True)]
    if len(indices) == 1:
        captions = [""]
        title += f" ({classes[0]})"

    def after_tile(done: int) -> None:
        if progress is not None:
            name = names[(done - 1) // len(severities)]
            progress(done, len(names) * len(severities), name)

    sheet = corruption_sheet(
        lambda name, severity: source.images(name, severity, indices),
        names,
        severities,
        captions=captions,
        originals=None if source.clean is None else [source.clean.images[i] for i in indices],
        title=title,
        progress=after_tile,
    )
    return replace(sheet, left_out=source.left_out())


def _chosen_images(images: int | None, index: Sequence[int | str] | None, count: int) -> list[int]:
    if index is None:
        return list(range(min(images or 1, count)))
    if images is not None:
        raise OptionError("images", " and ", "index", " exclude each other: leave one out")
    parts = [str(part) for part in index]
    wrong = [repr(part) for part in parts if not part.isdecimal() or int(part) >= count]
    if wrong:
        raise OptionError("index", f" {', '.join(wrong)}: must be 0 to {count - 1}")
    return [int(part) for part in parts]


@dataclass(frozen=True)
class _Source:
    """Corrupted images: from stored arrays, or made here from the clean ones."""

    path: Path
    clean: Dataset | None
    stored: Path | None
    wanted: tuple[str, ...] | Literal["all"]
    split: SplitName
    seed: int
    labels: Labels
    constants: Constants

    @property
    def title(self) -> str:
        return str(self.stored or (self.clean.name if self.clean else self.path))

    def names(self) -> tuple[str, ...]:
        if self.wanted != "all":
            return self.wanted
        if self.stored is None:
            out = self.left_out()
            return tuple(name for name in known_names() if name not in out)
        there = stored_names(self.stored)
        known = tuple(name for name in known_names() if name in there)
        return known + tuple(name for name in there if name not in known)

    def left_out(self) -> dict[str, str]:
        """Corruptions of ``"all"`` that cannot be made here, each with its requirement."""
        if self.wanted != "all" or self.stored is not None:
            return {}
        return unavailable(known_names())

    def corrupted(self, name: str, severity: int) -> Dataset:
        assert self.stored is not None
        return read_corrupted(self.stored, name, severity, labels=self.labels)

    def images(self, name: str, severity: int, indices: Sequence[int]) -> list[Image]:
        pool = ImagePool(
            clean=self.clean if self.stored is None else None,
            stored=None if self.stored is None else self.corrupted(name, severity),
            corruption=name,
            severity=severity,
            seed=split_seed(self.seed, self.split),
            constants=self.constants,
        )
        return list(pool.take(np.array(indices)).images)
