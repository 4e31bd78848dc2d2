"""Labeled image files: listed first, and decoded, many at once, when they are wanted."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pmt._util.arrays import Int64Array, Uint8Array
from pmt._util.checks import checked_size
from pmt._util.processes import thread_count
from pmt._util.progress import ProgressLine
from pmt._util.text import counted
from pmt.datasets.arrays import checked_indices
from pmt.datasets.dataset import Dataset
from pmt.datasets.files import Problems, damaged
from pmt.datasets.picture import Fit, UndecodableError, decoded, pillow, upright_size

# Files that a thread takes at a time: also how often progress is shown and Ctrl-C heard.
BLOCK = 16
MEMORY_INFO = Path("/proc/meminfo")
Result = TypeVar("Result")


def decode_files(folder: Path, paths: Sequence[Path], fit: Fit, threads: int = 0) -> Uint8Array:
    """Decode all files into one read-only array.

    The array is uint8 of shape (N, H, W, C), with C = 1 if every image is gray, else 3. Without a
    size in `fit` all images must have the size of the first. `threads` = 0 takes one per core:
    Pillow lets the others run meanwhile. One ValueError tells of all images that cannot be decoded,
    or of an array larger than the free memory.
    """
    pillow()
    height, width = fit.size or _first_size(paths, fit)
    _refuse_too_large(folder, (len(paths), height, width, 3), fit)
    images = np.empty((len(paths), height, width, 3), np.uint8)
    is_gray = np.zeros(len(paths), np.bool_)

    def fill(index: int) -> tuple[int, str, str] | None:
        """Decode into the row of an index; return it with the problem and the remedy, if any."""
        try:
            image = decoded(paths[index], fit)
        except UndecodableError as error:
            problem, remedy = error.args
            return index, problem, remedy
        if image.shape[:2] != (height, width):
            own = "x".join(map(str, image.shape[:2]))
            problem = f"is {own} (height x width) but {paths[0].name} is {height}x{width}"
            return index, problem, "give one size for all, as in size=(32, 32)"
        images[index] = image
        is_gray[index] = image.shape[2] == 1
        return None

    problems = Problems(folder)
    for found in _in_threads(fill, len(paths), thread_count(threads) or os.cpu_count() or 1):
        if found is not None:
            index, problem, remedy = found
            problems.add(paths[index], problem, remedy)
    problems.raise_if_any()
    # Gray images are in all three channels alike.
    images = np.ascontiguousarray(images[..., :1]) if is_gray.all() else images
    images.flags.writeable = False
    return images


def _in_threads(call: Callable[[int], Result], count: int, threads: int) -> list[Result]:
    """Return a function's results for 0 to count - 1; in this thread where no other starts."""
    results: list[Result] = []
    pool = ThreadPoolExecutor(min(threads, count), thread_name_prefix="pmt-decode")
    blocks = [range(start, min(start + BLOCK, count)) for start in range(0, count, BLOCK)]

    def of_block(indices: range) -> list[Result]:
        return [call(index) for index in indices]

    with ProgressLine(count, unit="image") as line:
        try:
            try:
                found = pool.map(of_block, blocks)
            except RuntimeError:
                found = map(of_block, blocks)
            for block in found:
                results += block
                line.update(len(results), "decoding")
        finally:
            # After an error or Ctrl-C, what waits is dropped and only the images at hand end.
            pool.shutdown(cancel_futures=True)
    return results


def common_size(paths: Sequence[Path]) -> tuple[int, int] | None:
    """Return height and width of images, by the heads that can be read; None where they differ."""
    sizes = (upright_size(path) for path in paths)
    known = (size for size in sizes if size is not None)
    first = next(known, None)
    return first if all(size == first for size in known) else None


def _first_size(paths: Sequence[Path], fit: Fit) -> tuple[int, int]:
    """Size of the first image that decodes: where none does, any will do to tell the problems."""
    for path in paths:
        try:
            height, width, _ = decoded(path, fit).shape
        except UndecodableError:
            continue
        return height, width
    return 1, 1


def _refuse_too_large(folder: Path, shape: tuple[int, int, int, int], fit: Fit) -> None:
    wanted, free = int(np.prod(shape, dtype=np.int64)), free_memory()
    if free is not None and wanted > free:
        height, width = shape[1:3]
        raise ValueError(
            f"{folder}: {shape[0]:,} images of {height}x{width}x3 take {wanted / 1e9:.1f} GB, "
            f"{free / 1e9:.1f} GB of memory are free; take fewer with limit=N or a smaller size"
        )


def free_memory() -> int | None:
    """Return the bytes of memory that can be had without swapping; None where nobody tells."""
    try:
        lines = MEMORY_INFO.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


@dataclass(frozen=True, eq=False, repr=False)
class ImageFiles:
    """A list of image files with labels: a data set too large to hold, or not yet read.

    Parameters
    ----------
    folder : pathlib.Path
        The data set's folder, for errors.
    paths : tuple of pathlib.Path
        The files, in the order of the images; N, at least 1.
    labels : ndarray of int64
        int64, shape (N,), 0 to ``len(class_names) - 1``.
    class_names : tuple of str
        Name of every class, in the order of the labels.
    name : str
        Short name for reports.
    groups : tuple of str, optional
        The group of each image, see :class:`Dataset`.
    """

    folder: Path
    paths: tuple[Path, ...]
    labels: Int64Array
    class_names: tuple[str, ...]
    name: str
    groups: tuple[str, ...] | None = None

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.paths)

    def __repr__(self) -> str:
        """Return one line: name, number of images and of classes."""
        classes = counted(len(self.class_names), "class", "classes")
        return f"ImageFiles({self.name!r}, {counted(len(self), 'image')}, {classes})"

    def subset(self, indices: npt.ArrayLike) -> ImageFiles:
        """Return the files at `indices`, in that order; rules and errors as `Dataset.subset`."""
        chosen = checked_indices(indices, len(self))
        return replace(
            self,
            paths=tuple(self.paths[i] for i in chosen),
            labels=self.labels[chosen],
            groups=None if self.groups is None else tuple(self.groups[i] for i in chosen),
        )

    def read(
        self, *, size: tuple[int, int] | None = None, crop: float | None = None, threads: int = 0
    ) -> Dataset:
        """Decode all files, straight to the size wanted.

        Besides the result, N x H x W x 3 bytes, each thread holds one image at its own size.

        Parameters
        ----------
        size : tuple of int, optional
            Height and width in pixels; by default all images must have one size.
        crop : float, optional
            See :func:`pmt.datasets.load`.
        threads : int
            Number that decode at once, 0 for one per core; the result does not depend on it.

        Returns
        -------
        Dataset
            One channel if every image is gray, else RGB.

        Raises
        ------
        ValueError
            If images cannot be decoded (all of them are told at once), or there is too little
            memory.
        ModuleNotFoundError
            If Pillow is not installed.
        """
        images = decode_files(self.folder, self.paths, Fit(checked_size(size), crop), threads)
        groups = None if self.groups is None else np.array(self.groups)
        return Dataset(images, self.labels, self.class_names, self.name, groups)


def listed_files(
    folder: Path,
    paths: Sequence[Path],
    labels: Sequence[int] | npt.NDArray[np.integer],
    class_names: Sequence[str],
    name: str,
    *,
    annotation: Path,
    every_class: bool = True,
) -> ImageFiles:
    """Make the list that an annotation file tells, checked against the files on disk.

    `annotation` is the file that lists the images, for errors; with `every_class` each class must
    have an image in the split. One ValueError tells all problems: no image, a label without a name,
    a class without an image, a name twice, images that are not there or outside of the folder.
    """
    problems = Problems(folder)
    if not len(paths):
        problems.add(annotation, "lists no image for this split", "download it again")
    found = {int(label) for label in labels}
    for label in sorted(found):
        if not 0 <= label < len(class_names):
            problems.add(
                annotation,
                f"class {label + 1} is out of range 1 to {len(class_names)} of the class names",
                "download the annotation files again, all of one source",
            )
    for class_name in sorted({c for c in class_names if list(class_names).count(c) > 1}):
        problems.add(annotation, f"names class {class_name!r} twice", "give it another name")
    for label, class_name in enumerate(class_names):
        if paths and every_class and label not in found:
            problem = f"lists no image of class {class_name!r}"
            problems.add(annotation, problem, "download the annotation files again")
    for path in paths:
        if ".." in path.parts or not path.is_relative_to(folder):
            problems.add(annotation, f"lists {path}, outside of the folder", "do not use it")
    problems.raise_if_any()
    for path in absent(paths):
        problems.add(path, f"no such file, but {annotation.name} lists it", "unpack the images")
    problems.raise_if_any()
    return ImageFiles(
        folder=folder,
        paths=tuple(paths),
        labels=np.asarray(labels, np.int64),
        class_names=tuple(class_names),
        name=name,
    )


def absent(paths: Sequence[Path]) -> list[Path]:
    """Return those that are not there, asking each folder once and not each file."""
    listings: dict[Path, set[str]] = {}
    missing_paths = []
    for path in paths:
        parent = path.parent
        if parent not in listings:
            listings[parent] = set(os.listdir(parent)) if parent.is_dir() else set()
        if path.name not in listings[parent]:
            missing_paths.append(path)
    return missing_paths


def renamed(files: ImageFiles, class_names: Sequence[str] | None) -> ImageFiles:
    """Put other class names, as many, in place of those on disk."""
    if class_names is None:
        return files
    if len(class_names) != len(files.class_names):
        raise damaged(
            files.folder,
            f"has {len(files.class_names)} classes, class_names has {len(class_names)}",
            "give one name a class",
        )
    return replace(files, class_names=tuple(class_names))
