"""A contact sheet of a data set, or of its images corrupted, by the name of the data set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from pmt import corruptions
from pmt._util.checks import OptionError
from pmt._util.text import counted
from pmt.corruptions import SEVERITIES
from pmt.corruptions.apply import unavailable
from pmt.datasets import Dataset
from pmt.datasets.cifar import has_cifar
from pmt.datasets.corrupted_arrays import find_corrupted, read_corrupted, stored_names
from pmt.protocol import load_clean
from pmt.protocol.data_source import BUNDLED
from pmt.sheets.sheet import Image, Sheet, corruption_sheet, dataset_sheet

__all__ = ["SheetJob", "make_sheet"]


@dataclass(frozen=True)
class SheetJob:
    """A contact sheet, see :func:`make_sheet`.

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
    """

    data: str
    corruptions: tuple[str, ...] | Literal["all"] | None = None
    severities: tuple[int, ...] = SEVERITIES
    split: str = "test"
    images: int | None = None
    index: tuple[int | str, ...] | None = None
    seed: int = 0
    size: int | None = None
    labels: str = "fine"
    constants: str = "cifar10"

    def clean(self) -> Dataset:
        """Read the images without corruption."""
        return load_clean(self.data, split=self.split, size=self.size, labels=self.labels)


def make_sheet(job: SheetJob, *, progress: Callable[[int, int, str], None] | None = None) -> Sheet:
    """Lay out a data set, or its images corrupted.

    Parameters
    ----------
    job : SheetJob
        Sheet to draw.
    progress : callable, optional
        Called as ``progress(done, tiles, corruption)`` after each corrupted tile.

    Returns
    -------
    Sheet
        For :func:`draw` or :func:`png`.

    Raises
    ------
    FileNotFoundError, ValueError, ImportError
        As :func:`pmt.datasets.load` and :func:`pmt.corruptions.corrupt`; or if an index is
        not that of an image.
    """
    if job.corruptions is not None:
        return _corruption_sheet(job, progress)
    data = job.clean()
    height, width, channels = data.images.shape[1:]
    images = counted(len(data), f"{job.split} image")
    title = f"{data.name}: {images}, {height}x{width}x{channels}"
    return dataset_sheet(data, images=job.images or 10, title=title)


def _corruption_sheet(job: SheetJob, progress: Callable[[int, int, str], None] | None) -> Sheet:
    source = _Source.opened(job)
    names, severities = source.names(), job.severities
    labeled = source.clean or source.corrupted(names[0], severities[0])
    indices = _chosen_images(job, len(source.clean or source.corrupted(names[0], 1)))
    classes = [labeled.class_names[int(labeled.labels[index])] for index in indices]
    number = "image" if len(indices) == 1 else "images"
    title = f"{source.title}, {job.split} {number} {', '.join(map(str, indices))}"
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


def _chosen_images(job: SheetJob, count: int) -> list[int]:
    if job.index is None:
        return list(range(min(job.images or 1, count)))
    if job.images is not None:
        raise OptionError("images", " and ", "index", " exclude each other: leave one out")
    parts = [str(part) for part in job.index]
    wrong = [repr(part) for part in parts if not part.isdecimal() or int(part) >= count]
    if wrong:
        raise OptionError("index", f" {', '.join(wrong)}: must be 0 to {count - 1}")
    return [int(part) for part in parts]


@dataclass(frozen=True)
class _Source:
    """Corrupted images: from stored arrays, or made here from the clean ones."""

    job: SheetJob
    clean: Dataset | None
    stored: Path | None

    @classmethod
    def opened(cls, job: SheetJob) -> _Source:
        path = Path(job.data)
        stored = None if job.data == BUNDLED else find_corrupted(path, job.split)
        if stored is not None and job.size is not None:
            raise OptionError("size", f" {job.size}: {stored} holds corrupted arrays; leave it")
        clean = job.clean() if stored is None or has_cifar(path) else None
        return cls(job, clean, stored)

    @property
    def title(self) -> str:
        return str(self.stored or (self.clean.name if self.clean else Path(self.job.data)))

    def names(self) -> tuple[str, ...]:
        if self.job.corruptions is not None and self.job.corruptions != "all":
            return self.job.corruptions
        if self.stored is None:
            out = self.left_out()
            return tuple(name for name in corruptions.names() if name not in out)
        there = stored_names(self.stored)
        known = tuple(name for name in corruptions.names() if name in there)
        return known + tuple(name for name in there if name not in known)

    def left_out(self) -> dict[str, str]:
        """Corruptions of ``"all"`` that cannot be made here, each with what it needs."""
        if self.job.corruptions != "all" or self.stored is not None:
            return {}
        return unavailable(corruptions.names())

    def corrupted(self, name: str, severity: int) -> Dataset:
        assert self.stored is not None
        return read_corrupted(self.stored, name, severity, labels=self.job.labels)

    def images(self, name: str, severity: int, indices: Sequence[int]) -> list[Image]:
        if self.stored is not None:
            data = self.corrupted(name, severity)
            return [np.asarray(data.images[index]) for index in indices]
        assert self.clean is not None
        chosen = np.array(indices)
        images = corruptions.corrupt(
            self.clean.images[chosen],
            name,
            severity,
            seed=corruptions.split_seed(self.job.seed, self.job.split),
            indices=chosen,
            constants=self.job.constants,
        )
        return list(images)
