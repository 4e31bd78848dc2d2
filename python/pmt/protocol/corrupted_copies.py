"""Corrupted copies of a data set on disk, by the name of the data set."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pmt._util.checks import SplitName, check_type, checked_names
from pmt.corruptions import ArrayWriter
from pmt.corruptions import names as known_names
from pmt.corruptions.apply import unavailable
from pmt.corruptions.catalog import Constants
from pmt.datasets import Dataset
from pmt.datasets.cifar import Labels
from pmt.datasets.layouts import chosen_indices
from pmt.protocol.data_source import load_clean


class CorruptedCopies:
    """The arrays of a folder, made one by one.

    Attributes
    ----------
    data : Dataset
        The clean images.
    names : tuple of str
        Corruptions of the folder, without those that are left out.
    left_out : dict of str to str
        Corruptions of ``"all"`` that cannot be made here, each with what it needs.
    already_there : list of str
        Corruptions whose arrays are there, whole.
    missing : list of str
        Those that are to be made.
    made : list of dict
        ``name``, ``images_per_second`` and ``seconds`` of those that were made.
    """

    def __init__(
        self, data: Dataset, writer: ArrayWriter, names: tuple[str, ...] | Literal["all"]
    ) -> None:
        self.data = Dataset.of(data, "data")
        check_type("writer", writer, ArrayWriter, "a pmt.corruptions.ArrayWriter")
        self._writer = writer
        takes_all = isinstance(names, str) and names == "all"
        wanted = known_names() if takes_all else checked_names("names", names)
        self.already_there = [name for name in wanted if writer.is_whole(name)]
        missing = [name for name in wanted if name not in self.already_there]
        self.left_out = unavailable(missing) if takes_all else {}
        self.missing = [name for name in missing if name not in self.left_out]
        self.names = tuple(name for name in wanted if name not in self.left_out)
        self.made: list[dict[str, Any]] = []

    @property
    def images(self) -> int:
        """Images of an array: those of all severities."""
        return self._writer.shape[0]

    @property
    def bytes(self) -> int:
        """Bytes of all arrays."""
        return len(self.names) * self._writer.size

    def make(self, name: str, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
        """Make one array, calling ``progress(images)``; return its record of ``made``."""
        start = time.perf_counter()
        self._writer.write(name, progress)
        seconds = time.perf_counter() - start
        record = {"name": name, "images_per_second": self.images / seconds, "seconds": seconds}
        self.made.append(record)
        return record

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        manifest = self._writer.manifest
        return {
            "out": str(self._writer.folder),
            "n": len(self.data),
            "split": manifest.split,
            "seed": manifest.seed,
            "constants": manifest.constants,
            "already_there": self.already_there,
            "left_out": self.left_out,
            "made": self.made,
            "bytes": self.bytes,
        }


def write_corrupted(data: str, out: str | Path, **options: Any) -> CorruptedCopies:
    """Write one array for each corruption, all severities in it.

    Files are there whole or not at all, and arrays that are there are not made again. Parameters
    and errors are those of :func:`open_copies`.

    Returns
    -------
    CorruptedCopies
        What was made.
    """
    copies = open_copies(data, out, **options)
    for name in copies.missing:
        copies.make(name)
    return copies


def open_copies(
    data: str,
    out: str | Path,
    *,
    names: tuple[str, ...] | Literal["all"] = "all",
    split: SplitName = "test",
    seed: int = 0,
    limit: int = 0,
    size: int | None = None,
    labels: Labels = "fine",
    constants: Constants = "cifar10",
) -> CorruptedCopies:
    """Read the images to corrupt, and find problems before the work begins.

    Parameters
    ----------
    data : str
        Data set in any layout of :func:`pmt.datasets.load`, or ``"bundled"``.
    out : str or pathlib.Path
        Folder to write, in the layout of CIFAR-10-C: new, empty, or an earlier one of the same
        images and seed.
    names : tuple of str or "all"
        Corruptions; by default all, but ``frost`` only where its photographs are.
    split : {"train", "test"}
        Part of the data set.
    seed : int
        Seed of the corruptions, 0 or more: the test split is corrupted with the next one.
    limit : int
        At most this many images, always the same ones; 0 takes all.
    size : int, optional
        Height and width in pixels that images are resized to before; by default their own.
    labels : {"fine", "coarse"}
        Labels of CIFAR-100.
    constants : {"cifar10", "imagenet"}
        Constants of the corruptions.

    Returns
    -------
    CorruptedCopies
        Whose ``make`` makes one.

    Raises
    ------
    ValueError, FileNotFoundError, ImportError
        As :func:`load_clean` and :func:`pmt.corruptions.corrupt`.
    FileExistsError
        If the folder holds something else, or arrays of other images or of another seed.
    OSError
        If the folder cannot be written, or the disk does not have enough free space.
    """
    whole = load_clean(data, split=split, size=size, labels=labels)
    indices = chosen_indices(len(whole), limit)
    images = whole.subset(indices) if len(indices) < len(whole) else whole
    writer = ArrayWriter(images, out, split=split, seed=seed, constants=constants, indices=indices)
    copies = CorruptedCopies(images, writer, names)
    writer.check(copies.missing)
    return copies
