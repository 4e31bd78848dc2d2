"""Decoding many image files at once into one array of the size wanted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pmt._util.processes import thread_count
from pmt._util.progress import ProgressLine
from pmt.datasets.files import Problems
from pmt.datasets.picture import Box, Fit, UndecodableError, decoded, pillow, upright_size

# Files that a thread takes at a time: also how often progress is shown and Ctrl-C heard.
BLOCK = 16
MEMORY_INFO = Path("/proc/meminfo")
_Images = npt.NDArray[np.uint8]
_Found = tuple[int, str, str]


def decode_files(
    folder: Path,
    paths: Sequence[Path],
    fit: Fit,
    boxes: npt.NDArray[np.float64] | None,
    threads: int = 0,
) -> _Images:
    """Decode all files into one read-only array.

    The array is uint8 of shape (N, H, W, C), with C = 1 if every image is gray, else 3. Without a
    size in `fit` all images must have the size of the first. `boxes`, float64 (N, 4), are cut to.
    `threads` = 0 takes one per core: Pillow lets the others run meanwhile. One ValueError tells of
    all images that cannot be decoded, or of an array larger than the free memory.
    """
    pillow()
    height, width = fit.size or _first_size(paths, fit, boxes)
    _refuse_too_large(folder, (len(paths), height, width, 3), fit)
    work = _Work(paths, fit, boxes, np.empty((len(paths), height, width, 3), np.uint8))
    problems = Problems(folder)
    for index, problem, remedy in work.run(thread_count(threads) or os.cpu_count() or 1):
        problems.add(paths[index], problem, remedy)
    problems.raise_if_any()
    # Gray images are in all three channels alike.
    images = np.ascontiguousarray(work.images[..., :1]) if work.is_gray.all() else work.images
    images.flags.writeable = False
    return images


def have_one_size(paths: Sequence[Path]) -> bool:
    """Whether the heads of all files that can be read tell the same height and width."""
    sizes = (upright_size(path) for path in paths)
    known = (size for size in sizes if size is not None)
    first = next(known, None)
    return all(size == first for size in known)


class _Work:
    """The files, and the array that the threads fill, each its own rows."""

    def __init__(
        self,
        paths: Sequence[Path],
        fit: Fit,
        boxes: npt.NDArray[np.float64] | None,
        images: _Images,
    ) -> None:
        self.paths = paths
        self.fit = fit
        self.boxes = boxes
        self.images = images
        self.is_gray = np.zeros(len(paths), np.bool_)

    def run(self, threads: int) -> list[_Found]:
        count = len(self.paths)
        line = ProgressLine(count, unit="image")
        found: list[_Found] = []
        pool = ThreadPoolExecutor(min(threads, count), thread_name_prefix="pmt-decode")
        try:
            for start, block in enumerate(pool.map(self._block, range(0, count, BLOCK))):
                found += block
                line.update(min(count, (start + 1) * BLOCK), "decoding")
        finally:
            # After an error or Ctrl-C, what waits is dropped and only the images at hand end.
            pool.shutdown(cancel_futures=True)
            line.clear()
        return found

    def _block(self, start: int) -> list[_Found]:
        stop = min(start + BLOCK, len(self.paths))
        return [found for i in range(start, stop) if (found := self._one(i)) is not None]

    def _one(self, index: int) -> _Found | None:
        try:
            image = decoded(self.paths[index], self.fit, _box(self.boxes, index))
        except UndecodableError as error:
            problem, remedy = error.args
            return index, problem, remedy
        if image.shape[:2] != self.images.shape[1:3]:
            first = "x".join(map(str, self.images.shape[1:3]))
            own = "x".join(map(str, image.shape[:2]))
            return (
                index,
                f"is {own} (height x width) but {self.paths[0].name} is {first}",
                "give one size for all, as in size=(32, 32)",
            )
        self.images[index] = image
        self.is_gray[index] = image.shape[2] == 1
        return None


def _first_size(
    paths: Sequence[Path], fit: Fit, boxes: npt.NDArray[np.float64] | None
) -> tuple[int, int]:
    """Size of the first image that decodes: where none does, any will do to tell the problems."""
    for index, path in enumerate(paths):
        try:
            height, width, _ = decoded(path, fit, _box(boxes, index)).shape
        except UndecodableError:
            continue
        return height, width
    return 1, 1


def _box(boxes: npt.NDArray[np.float64] | None, index: int) -> Box | None:
    if boxes is None:
        return None
    left, top, right, bottom = boxes[index].tolist()
    return left, top, right, bottom


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
