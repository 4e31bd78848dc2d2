"""Finding out which layout a data set on disk has, and reading it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pmt.datasets.checks import checked_integer
from pmt.datasets.cifar import has_cifar, read_cifar
from pmt.datasets.corrupted_arrays import find_corrupted
from pmt.datasets.damage import damaged, missing
from pmt.datasets.dataset import Dataset
from pmt.datasets.idx import has_idx, read_idx
from pmt.datasets.image_folder import SPLITS, read_image_folder, resized, sub_folders
from pmt.datasets.npz import read_npz

LABELS = ("fine", "coarse")
LAYOUTS = (
    "CIFAR-10 binary (data_batch_1.bin) or python (data_batch_1), CIFAR-100 binary (train.bin) or "
    "python (train), MNIST idx (train-images-idx3-ubyte[.gz]), train.npz and test.npz, one .npz "
    "file, or an image folder (train/CLASS/*.png)"
)


def load(
    path: str | os.PathLike[str],
    *,
    split: str = "train",
    class_names: Sequence[str] | None = None,
    size: int | tuple[int, int] | None = None,
    labels: str = "fine",
) -> Dataset:
    """Read a data set from disk; the files themselves show which layout it is.

    Parameters
    ----------
    path
        One of: a folder with the official files of CIFAR-10 or CIFAR-100, binary or python, or
        its parent; a folder with the idx files of MNIST or Fashion-MNIST, gzip-compressed or
        not; a folder with ``train.npz`` and ``test.npz``; one ``.npz`` file (`images`, `labels`,
        optionally `class_names`); a folder of images, ``train/CLASS/`` and ``test/CLASS/`` or
        ``CLASS/`` directly. A single file, or an image folder without splits, is read whole for
        either `split`.
    split
        "train" or "test".
    class_names
        Names in the order of the labels, in the place of those on disk. For an image folder: the
        names of the sub-folders in the order wanted.
    size
        Side, or height and width, in pixels, to resize to (bilinear; needs Pillow). By default
        images keep their size, and those of an image folder must all have the same.
    labels
        "fine", or "coarse" for the 20 superclasses of CIFAR-100.

    Returns
    -------
    Dataset
        The whole split, in memory.

    Raises
    ------
    FileNotFoundError
        Nothing at `path`, or the split is missing.
    ValueError
        No known layout, a damaged file, or a bad argument; the message names the file, the
        problem and the remedy.
    ModuleNotFoundError
        Pillow is needed and not installed.
    """
    if split not in SPLITS:
        raise ValueError(f"split = {split!r}: must be 'train' or 'test'")
    if isinstance(class_names, str):
        raise TypeError(f"class_names = {class_names!r}: must be a sequence of names, not one text")
    if labels not in LABELS:
        raise ValueError(f"labels = {labels!r}: must be 'fine' or 'coarse'")
    height_width = _checked_size(size)
    dataset = _read(Path(path), split, class_names, height_width, labels)
    if height_width is None or dataset.images.shape[1:3] == height_width:
        return dataset
    return replace(dataset, images=resized(dataset.images, height_width))


def _read(
    path: Path,
    split: str,
    class_names: Sequence[str] | None,
    size: tuple[int, int] | None,
    labels: str,
) -> Dataset:
    if not path.exists():
        raise missing(path, "no such file or folder", "check the path")
    if path.is_dir() and has_cifar(path):
        return read_cifar(path, split, class_names, labels)
    if find_corrupted(path, split) is not None:
        raise damaged(
            path,
            "holds corrupted images alone (labels.npy, fog.npy, ...)",
            "choose some with --corruption NAME --severity S, in `pmt show` with --corruptions, in "
            "Python with pmt.datasets.load_corrupted",
        )
    if labels != "fine":
        raise ValueError(f"labels = {labels!r}: {path} is not CIFAR-100; leave the option out")
    if path.is_file():
        if path.suffix != ".npz":
            raise damaged(path, "a file, but not .npz", f"give one of: {LAYOUTS}")
        return read_npz(path, class_names)
    if has_idx(path):
        return read_idx(path, split, class_names)
    if any((path / f"{name}.npz").is_file() for name in SPLITS):
        return _read_npz_split(path, split, class_names)
    if sub_folders(path):
        return read_image_folder(path, split, class_names, size)
    raise damaged(path, "no data set found in this folder", f"give one of: {LAYOUTS}")


def _read_npz_split(folder: Path, split: str, class_names: Sequence[str] | None) -> Dataset:
    path = folder / f"{split}.npz"
    if not path.is_file():
        raise missing(path, f"no such file, so there is no {split} split", "add it")
    return read_npz(path, class_names)


def _checked_size(size: int | tuple[int, int] | None) -> tuple[int, int] | None:
    if size is None:
        return None
    pair = size if isinstance(size, tuple) else (size, size)
    if len(pair) != 2:
        raise ValueError(f"size = {size!r}: must be one side or (height, width)")
    height, width = (checked_integer("size", side) for side in pair)
    if height < 1 or width < 1:
        raise ValueError(f"size = {size!r}: height and width must be at least 1")
    return height, width
