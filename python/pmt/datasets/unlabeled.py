"""Images without labels, from any files, for a trained model to name."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pmt._util.arrays import Uint8Array
from pmt._util.checks import check_type, checked_path
from pmt._util.text import counted
from pmt.datasets.array_files import read_npz_images
from pmt.datasets.files import damaged, missing
from pmt.datasets.image_files import decode_files
from pmt.datasets.image_folder import SUFFIXES, unread_images, warn_of_unread
from pmt.datasets.picture import Fit, resized

# Images that are decoded before any of them is used; they bound the memory.
BLOCK = 1024


class NamedImages(NamedTuple):
    """Images, uint8 (N, H, W, C), and the file of each; of an .npz file ``FILE[index]``."""

    names: list[str]
    images: Uint8Array


def find_files(places: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """List files: a folder stands for all images in it and below, sorted by their paths."""
    if isinstance(places, (str, os.PathLike)):
        raise TypeError(f"files={os.fspath(places)!r} must be a sequence of paths; give [path]")
    is_array = hasattr(places, "__array__")
    remedy = "model.predict(images) takes arrays" if is_array else "give [path]"
    check_type("files", places, Sequence, f"a sequence of paths; {remedy}")
    if not len(places):
        raise ValueError("files is empty: give image files, folders of them or .npz files")
    files: list[Path] = []
    for place in (checked_path("files", place) for place in places):
        if not place.exists():
            raise missing(place, "no such file or folder", "check the path")
        files += _images_below(place) if place.is_dir() else [place]
    return files


def _images_below(folder: Path) -> list[Path]:
    below = list(_files_below(folder))
    found = [path for path in below if path.suffix.lower() in SUFFIXES]
    warn_of_unread(folder, unread_images(below))
    if not found:
        suffixes = ", ".join(sorted(SUFFIXES))
        raise damaged(folder, f"no image in it or below ({suffixes})", "check the path")
    return sorted(found)


def _files_below(folder: Path) -> Iterator[Path]:
    """Walk through visible folders, linked ones too, each once."""
    seen: set[str] = set()
    for root, folders, files in os.walk(folder, followlinks=True):
        place = os.path.realpath(root)
        if place in seen:  # a link to a folder above, or to one that another link names
            folders.clear()
            continue
        seen.add(place)
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(root, name) for name in files if not name.startswith("."))


def read_in_blocks(
    files: Sequence[Path], size: tuple[int, int], channels: int, *, threads: int = 0
) -> Iterator[NamedImages]:
    """Read images in the order of their files, at most 1024 at a time.

    Files are images, and .npz files with an array `images`. All are resized to `size` (height and
    width) as :func:`pmt.datasets.load` does; with 3 `channels` gray images get three equal ones.
    A ValueError tells of files that cannot be decoded or have more channels than wanted.
    """
    waiting: list[Path] = []
    for file in files:
        is_npz = file.suffix.lower() == ".npz"
        if not is_npz:
            waiting.append(file)
        if waiting and (is_npz or len(waiting) == BLOCK):
            yield _decoded(waiting, size, channels, threads)
            waiting = []
        if is_npz:
            yield from _stored(file, size, channels)
    if waiting:
        yield _decoded(waiting, size, channels, threads)


def _decoded(
    files: Sequence[Path], size: tuple[int, int], channels: int, threads: int
) -> NamedImages:
    images = decode_files(_common_folder(files), files, Fit(size), threads)
    names = [str(file) for file in files]
    return NamedImages(names, _with_channels(images, channels, names))


def _stored(file: Path, size: tuple[int, int], channels: int) -> Iterator[NamedImages]:
    images = read_npz_images(file)
    for start in range(0, len(images), BLOCK):
        block = _with_channels(images[start : start + BLOCK], channels, [str(file)])
        names = [f"{file}[{start + index}]" for index in range(len(block))]
        yield NamedImages(names, resized(block, Fit(size)))


def _common_folder(files: Sequence[Path]) -> Path:
    try:
        return Path(os.path.commonpath([file.parent for file in files]))
    except ValueError:  # absolute and relative paths together
        return Path()


def _with_channels(images: Uint8Array, channels: int, names: Sequence[str]) -> Uint8Array:
    found = images.shape[3]
    if found == channels:
        return images
    if found == 1:
        return np.repeat(images, channels, axis=3)
    is_colored = (images != images[..., :1]).any(axis=(1, 2, 3))
    first = names[int(is_colored.argmax()) if len(names) == len(images) else 0]
    raise damaged(
        first,
        f"has {counted(found, 'channel')}, the model takes {channels}",
        "convert it to gray" if channels == 1 else "use another model",
    )
