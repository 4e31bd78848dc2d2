"""A contact sheet of a data set, or of its images corrupted, by the name of the data set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from pmt._util.checks import check_callable, checked_names, checked_path, checked_range
from pmt._util.text import counted
from pmt.corruptions import SEVERITIES, split_seed
from pmt.corruptions import names as known_names
from pmt.corruptions.apply import unavailable
from pmt.datasets import Dataset
from pmt.datasets.cifar import has_cifar
from pmt.datasets.corrupted_arrays import find_corrupted, read_corrupted, stored_names
from pmt.errors import OptionError
from pmt.model import Model
from pmt.model.model import check_model
from pmt.protocol import load_clean
from pmt.protocol.data_source import BUNDLED, DataSource, ImagePool
from pmt.sheets.sheet import (
    Image,
    Sheet,
    checked_severities,
    corruption_sheet,
    dataset_sheet,
    stage_sheet,
)

_BESIDE = 8  # images as they are and behind an input stage


def make_sheet(
    data: str,
    *,
    corruptions: tuple[str, ...] | Literal["all"] | None = None,
    severities: tuple[int, ...] = SEVERITIES,
    split: str = "test",
    images: int | None = None,
    index: tuple[int | str, ...] | None = None,
    seed: int = 0,
    size: int | None = None,
    labels: str = "fine",
    constants: str = "cifar10",
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
    split: str
    seed: int
    labels: str
    constants: str

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
