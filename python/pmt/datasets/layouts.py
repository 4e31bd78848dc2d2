"""Finding out which layout a data set on disk has, and reading it."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pmt._util.arrays import Int64Array
from pmt._util.checks import (
    SPLITS,
    SplitName,
    check_type,
    checked_path,
    checked_range,
    checked_size,
    checked_word,
)
from pmt.datasets.annotations import OFFICIAL
from pmt.datasets.array_files import has_idx, read_idx, read_npz
from pmt.datasets.arrays import checked_class_names
from pmt.datasets.cifar import LABELS, Labels, has_cifar, read_cifar
from pmt.datasets.corrupted_arrays import find_corrupted
from pmt.datasets.dataset import Dataset
from pmt.datasets.downloading import located, refuse_unfinished
from pmt.datasets.files import damaged, missing
from pmt.datasets.image_files import ImageFiles, renamed
from pmt.datasets.image_folder import FOLDER, list_image_folder, sub_folders
from pmt.datasets.picture import Fit, is_colored, resized
from pmt.errors import OptionError


def official_titles() -> str:
    """Name the data sets whose official files are read."""
    *titles, last = (layout.title for layout in OFFICIAL)
    return f"{', '.join(titles)} or {last}"


def find_image_files(
    folder: Path,
    split: SplitName,
    class_names: Sequence[str] | None = None,
    *,
    grouped: bool = False,
) -> ImageFiles | None:
    """List the images of one split of a folder; None if it holds no known layout of images."""
    for official in OFFICIAL:
        files = official.find(folder, split)
        if files is not None:
            return renamed(files, class_names)
    if sub_folders(folder):
        return list_image_folder(folder, split, class_names, grouped=grouped)
    return None


LAYOUTS = (
    "CIFAR-10 binary (data_batch_1.bin) or python (data_batch_1), CIFAR-100 binary (train.bin) or "
    "python (train), MNIST idx (train-images-idx3-ubyte[.gz]), train.npz and test.npz, one .npz "
    f"file, the official files of {official_titles()}, or an image folder (train/CLASS/*.png)"
)


def load(
    path: str | os.PathLike[str],
    split: SplitName = "train",
    *,
    class_names: Sequence[str] | None = None,
    size: int | tuple[int, int] | None = None,
    crop: float | None = None,
    limit: int = 0,
    threads: int = 0,
    labels: Labels = "fine",
    groups: str | None = None,
) -> Dataset:
    """Read a data set from disk; the files themselves show which layout it is.

    Parameters
    ----------
    path : str or pathlib.Path
        The folder with the official files of CIFAR-10 or CIFAR-100 (binary or python), MNIST,
        Fashion-MNIST, Stanford Cars, CUB-200-2011, Oxford Flowers-102, Food-101 or Oxford-IIIT
        Pets, or its parent; a folder with ``train.npz`` and ``test.npz``; one ``.npz`` file
        (`images`, `labels`, optionally `class_names`), where float32 or int8 `images` are inputs
        that are not pixels, see :class:`Dataset`; a folder of images, ``train/CLASS/`` and
        ``test/CLASS/`` or ``CLASS/`` directly; or the name of a data set that
        :func:`pmt.datasets.download` fetched, such as "cifar10". A single file, or an image folder
        without splits, is read whole for either `split`.
    split : {"train", "test"}
        "train" or "test".
    class_names : sequence of str, optional
        Names in the order of the labels, instead of those on disk. For an image folder: the
        names of the sub-folders in the order wanted.
    size : int or tuple of int, optional
        Side, or height and width, in pixels, to resize to (bilinear, smoothed; needs Pillow). By
        default images keep their size, and files of images must all have the same. Files are
        decoded straight to this size: N x H x W x 3 bytes are held, and one image per thread.
        Inputs that are not pixels have no size.
    crop : float, optional
        By default the whole image is stretched to `size`. A number above 0, at most 1, takes the
        largest centered region of the shape of `size`, times this share of its sides: 0.875 is
        the usual evaluation of ImageNet networks ("resize to 256, crop 224").
    limit : int
        At most this many images, evenly at random and always the same; only these are decoded. 0
        takes all.
    threads : int
        Number of images decoded at once, 0 for one per core; the result does not depend on it.
    labels : {"fine", "coarse"}
        "fine", or "coarse" for the 20 superclasses of CIFAR-100.
    groups : str, optional
        What says which images are of one group, see :class:`Dataset`: the name of an array of the
        ``.npz`` file, by default ``groups`` where it is there; or ``"folder"`` for an image folder
        ``CLASS/GROUP/``.

    Returns
    -------
    Dataset
        The split, or `limit` images of it, in memory.

    Raises
    ------
    FileNotFoundError
        If there is nothing at `path`, or the split is missing.
    ValueError
        If the layout is unknown, files are damaged, or an argument is out of range; the message
        names the files, the problems and the remedy.
    ModuleNotFoundError
        If Pillow is needed and not installed.
    """
    path, fit = checked_path("path", path), Fit(checked_size(size), crop)
    data = read_found(find(path, split, class_names, labels, groups), fit, limit, threads)
    if fit.size is not None and not data.has_pixels:
        raise ValueError(
            f"size={size!r}: {path} holds {data.images.dtype} inputs, which are not pixels and "
            "are not resized; leave the option out"
        )
    return data


def read_found(found: Dataset | ImageFiles, fit: Fit, limit: int = 0, threads: int = 0) -> Dataset:
    """Read a data set that was found, or `limit` images of it: fitted, or as it is where no pixels.

    Arguments and errors are those of :func:`load`.
    """
    chosen = chosen_indices(len(found), limit)
    if isinstance(found, ImageFiles):
        files = found if len(chosen) == len(found) else found.subset(chosen)
        data = files.read(size=fit.size, crop=fit.crop, threads=threads)
        is_part = len(chosen) < len(found)
        # Images that are left out count, too: no limit changes the channels.
        if is_part and data.images.shape[3] == 1 and any(map(is_colored, found.paths)):
            return in_color(data, 3)
        return data
    return fitted(found if len(chosen) == len(found) else found.subset(chosen), fit)


def fitted(data: Dataset, fit: Fit) -> Dataset:
    """Return a data set with its images cropped and resized; itself where that changes nothing."""
    if not data.has_pixels:
        return data
    images = resized(data.images, fit, f"data set {data.name!r}")
    return data if images is data.images else replace(data, images=images)


def in_color(data: Dataset, channels: int) -> Dataset:
    """Return a data set, gray images in three equal channels where a network takes three."""
    if (data.images.shape[3], channels) != (1, 3):
        return data
    # A view: what is taken of it is copied.
    return replace(data, images=np.broadcast_to(data.images, (*data.images.shape[:3], 3)))


def image_files(
    path: str | os.PathLike[str],
    *,
    split: SplitName = "train",
    class_names: Sequence[str] | None = None,
) -> ImageFiles:
    """List the image files of a split without decoding them; arguments and errors as `load`.

    Returns
    -------
    ImageFiles
        Paths, labels and names; ``.subset(indices)`` chooses, ``.read(size=...)`` decodes.

    Raises
    ------
    ValueError
        As :func:`load`, or if the data set has no image files (CIFAR-10, idx, npz).
    """
    found = find(path, split, class_names)
    if not isinstance(found, ImageFiles):
        raise ValueError(f"{path}: has arrays and not image files; use pmt.datasets.load")
    return found


def chosen_indices(count: int, limit: int) -> Int64Array:
    """Return which of `count` images a limit chooses: always the same, in order; 0 takes all."""
    limit = checked_range("limit", limit, 0)
    if limit == 0 or limit >= count:
        return np.arange(count)
    # Only raw 64-bit draws: NumPy promises their stream, not that of its shuffles.
    keys = np.random.PCG64(np.random.SeedSequence(0)).random_raw(count)
    return np.sort(np.argsort(keys, kind="stable")[:limit])


def find(
    path: str | os.PathLike[str],
    split: SplitName,
    class_names: Sequence[str] | None = None,
    labels: Labels = "fine",
    groups: str | None = None,
) -> Dataset | ImageFiles:
    """Read the arrays of a split, or list its image files; arguments and errors as :func:`load`."""
    checked_word("split", split, SPLITS)
    if class_names is not None:
        class_names = checked_class_names(class_names)
    check_type("groups", groups, (str, type(None)), "the name of a column or an array, or None")
    place = located(path)
    found = _found(place, split, class_names, labels, groups)
    if groups is not None and found.groups is None:
        raise OptionError(
            "groups",
            f" {groups!r}: {place} has none; they are an array of an .npz file, or {FOLDER!r} in a "
            "folder of images (CLASS/GROUP/*.png); leave the option out",
        )
    return found


def _found(
    path: Path,
    split: SplitName,
    class_names: Sequence[str] | None,
    labels: Labels,
    groups: str | None,
) -> Dataset | ImageFiles:
    checked_word("labels", labels, LABELS)
    if path.is_dir() and has_cifar(path):
        return read_cifar(path, split, class_names, labels)
    if find_corrupted(path, split) is not None:
        raise damaged(
            path,
            "holds only corrupted images (labels.npy, fog.npy, ...)",
            "choose some with --corruption NAME --severity S, in `pmt show` with --corruptions, in "
            "Python with pmt.datasets.load_corrupted",
        )
    if labels != "fine":
        raise ValueError(f"labels={labels!r}: {path} is not CIFAR-100; leave the option out")
    if not path.is_dir():
        if path.suffix != ".npz" or not path.is_file():
            raise damaged(path, "a file, but not .npz", f"give one of: {LAYOUTS}")
        return read_npz(path, class_names, groups)
    if has_idx(path):
        return read_idx(path, split, class_names)
    if any((path / f"{name}.npz").is_file() for name in SPLITS):
        return _read_npz_split(path, split, class_names, groups)
    files = find_image_files(path, split, class_names, grouped=groups == FOLDER)
    if files is None:
        refuse_unfinished(path)
        raise damaged(path, "no data set found in this folder", f"give one of: {LAYOUTS}")
    return files


def _read_npz_split(
    folder: Path, split: SplitName, class_names: Sequence[str] | None, groups: str | None
) -> Dataset:
    path = folder / f"{split}.npz"
    if not path.is_file():
        raise missing(path, f"no such file, so there is no {split} split", "add it")
    return read_npz(path, class_names, groups)
