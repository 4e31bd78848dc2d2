"""Contact sheets of data sets and of corruptions: rows of images with a label, under headings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pmt._util.arrays import Uint8Array
from pmt._util.checks import (
    check_callable,
    check_type,
    checked_names,
    checked_range,
    kind_of,
)
from pmt._util.text import counted
from pmt.datasets.dataset import Dataset
from pmt.model import Model
from pmt.model.model import check_model

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
