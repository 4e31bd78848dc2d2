"""The contact sheet of a data set: a row for each class."""

from __future__ import annotations

import numpy as np

from pmt.datasets.checks import checked_integer
from pmt.datasets.dataset import Dataset
from pmt.research.sheets.sheet import Group, Image, Row, Sheet


def dataset_sheet(dataset: Dataset, *, images: int = 10, title: str = "") -> Sheet:
    """Lay out the first images of every class.

    Parameters
    ----------
    dataset
        Its class names are the labels of the rows.
    images
        Images of a class, 1 or more.
    title
        By default the name of the data set and its number of images.

    Raises
    ------
    TypeError, ValueError
        `images` is not an integer, or below 1.
    """
    count = checked_integer("images", images)
    if count < 1:
        raise ValueError(f"images = {count}: must be 1 or more")
    rows = []
    for label, name in enumerate(dataset.class_names):
        members = np.flatnonzero(dataset.labels == label)
        tiles: list[Image] = [dataset.images[index] for index in members[:count]]
        note = f"{len(members):,} image{'' if len(members) == 1 else 's'}"
        rows.append(Row(name, tiles, note))
    columns = max(len(row.tiles) for row in rows)
    height, width, channels = dataset.images.shape[1:]
    default = f"{dataset.name}: {len(dataset):,} images {height}x{width}x{channels}"
    return Sheet(title or default, tuple(rows), (Group("", ("",) * columns),))
