"""Corrupted images as CIFAR-10-C publishes them: one .npy a corruption, and labels.npy.

Each array holds the images at severity 1, then all of them again at severity 2, up to 5, so
5 x 10,000 in the published CIFAR-10-C and CIFAR-100-C; labels.npy holds the labels five times.

Source of the format: D. Hendrycks and T. Dietterich, "Benchmarking neural network robustness to
common corruptions and perturbations", ICLR 2019; https://zenodo.org/records/2535967.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from pmt._util import atomic_file
from pmt._util.arrays import Array, Int64Array, Uint8Array
from pmt._util.checks import SPLITS, SplitName, checked_path, checked_range, checked_word
from pmt._util.parsing import parse_json
from pmt.datasets.array_files import channels_first, map_npy
from pmt.datasets.arrays import (
    check_spare_names,
    checked_class_names,
    has_channels_first,
    names_for,
    with_four_axes,
)
from pmt.datasets.catalog import (
    CIFAR10_CLASSES,
    CIFAR100_CLASSES,
    CIFAR100_COARSE_CLASSES,
    CIFAR100_COARSE_OF_FINE,
)
from pmt.datasets.cifar import Labels, varieties
from pmt.datasets.dataset import Dataset
from pmt.datasets.files import damaged, missing, read_bytes

LABELS = "labels.npy"
SEVERITIES = 5
PUBLISHED = {"CIFAR-10-C": "cifar10", "CIFAR-100-C": "cifar100"}
REMEDY = "download the archive again, or make the file again with `pmt corrupt`"
MANIFEST = "manifest.json"
MANIFEST_REMEDY = "delete the folder and make it again with `pmt corrupt`"


@dataclass(frozen=True)
class CorruptionManifest:
    """The facts that decide the bytes of every array in a folder.

    `seed` is the one that the user chose (see :func:`pmt.corruptions.split_seed`), `constants` says
    whose they are ("cifar10" or "imagenet"), `images` is N of the 5 N in every array, `shape` their
    height, width and channels, `data_crc32` the :func:`pmt.datasets.dataset.checksum`.
    """

    data: str
    split: str
    seed: int
    constants: str
    images: int
    shape: tuple[int, int, int]
    data_crc32: int
    class_names: tuple[str, ...]

    def differences(self, other: CorruptionManifest) -> list[str]:
        """List the differences of this one (in the folder) from `other` (asked for)."""
        there, here = asdict(self), asdict(other)
        found = [
            f"{name} is {there[name]!r} there, {here[name]!r} here"
            for name in ("data", "split", "seed", "constants", "images", "shape")
            if there[name] != here[name]
        ]
        if not found and self.data_crc32 != other.data_crc32:
            found.append("its clean images or labels were others")
        if not found and self.class_names != other.class_names:
            found.append("its class names were others")
        return found

    def write(self, folder: Path) -> None:
        """Write it into `folder`, whole or not at all."""
        atomic_file.write_text(folder / MANIFEST, json.dumps(asdict(self), indent=1) + "\n")


def read_manifest(folder: Path) -> CorruptionManifest | None:
    """Read the manifest of a folder; None where there is none, as in the published ones."""
    path = folder / MANIFEST
    if not path.is_file():
        return None
    content = parse_json(read_bytes(path), path, MANIFEST_REMEDY)
    try:
        shape, names = tuple(content["shape"]), checked_class_names(content["class_names"])
        return CorruptionManifest(**{**content, "shape": shape, "class_names": names})
    except (ValueError, TypeError, KeyError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise damaged(path, f"not a manifest ({reason})", MANIFEST_REMEDY) from None


def is_corrupted_folder(folder: Path) -> bool:
    """Whether a folder has this layout: it holds a labels.npy."""
    return (folder / LABELS).is_file()


def find_corrupted(path: Path, split: str) -> Path | None:
    """Find the corrupted arrays that stand for one split of the data set at `path`.

    The first of these that holds a labels.npy: `path` itself, for either split; ``path/train`` or
    ``path/test``; and for the test split ``path/CIFAR-10-C`` or ``path/CIFAR-100-C``.

    A ValueError tells of a path with both CIFAR-10-C and CIFAR-100-C that does not show which is
    meant.
    """
    for folder in (path, path / split):
        if is_corrupted_folder(folder):
            return folder
    inside = [path / name for name in PUBLISHED if is_corrupted_folder(path / name)]
    if split != "test" or not inside:
        return None
    clean = varieties(path)
    fitting = [folder for folder in inside if not clean or PUBLISHED[folder.name] in clean]
    if len(fitting) > 1:
        raise damaged(path, "holds both CIFAR-10-C and CIFAR-100-C", "give the folder of one")
    return fitting[0] if fitting else None


def stored_names(folder: Path) -> tuple[str, ...]:
    """List the corruptions whose arrays a folder holds, sorted by name."""
    found = _names(folder)
    if not found:
        raise missing(folder, f"no array beside {LABELS}", REMEDY)
    return tuple(found)


def _names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.npy") if path.name != LABELS)


def load_corrupted(
    path: str | os.PathLike[str],
    name: str,
    severity: int,
    *,
    split: SplitName = "test",
    class_names: Sequence[str] | None = None,
    labels: Labels = "fine",
) -> Dataset:
    """Read one corruption at one severity from stored arrays, as CIFAR-10-C is published.

    Parameters
    ----------
    path : str or pathlib.Path
        Folder of ``labels.npy`` and one ``.npy`` per corruption, or one that holds such a folder as
        ``CIFAR-10-C`` or ``CIFAR-100-C``, or as ``train`` and ``test``.
    name : str
        Corruption, the name of its file.
    severity : int
        1 to 5.
    split : {"train", "test"}
        "train" or "test": which folder is taken where there are two.
    class_names : sequence of str, optional
        Names instead of the official ones or those that ``pmt corrupt`` noted.
    labels : {"fine", "coarse"}
        "fine", or "coarse" for the 20 superclasses of CIFAR-100.

    Returns
    -------
    Dataset
        The images are mapped into memory: only what is used is read from disk.

    Raises
    ------
    FileNotFoundError
        If there are no such arrays, or no file for this corruption.
    ValueError
        If a file is damaged or an argument is out of range.
    """
    checked_path("path", path)
    folder = find_corrupted(Path(path), checked_word("split", split, SPLITS))
    if folder is None:
        raise missing(
            Path(path), f"no corrupted arrays of the {split} split ({LABELS}, fog.npy, ...)", REMEDY
        )
    return read_corrupted(folder, name, severity, class_names=class_names, labels=labels)


def read_corrupted(
    folder: Path,
    name: str,
    severity: int,
    *,
    class_names: Sequence[str] | None = None,
    labels: Labels = "fine",
) -> Dataset:
    """Read from the very folder that :func:`find_corrupted` found."""
    level = checked_severity(severity)
    images = _images(folder, name)
    count = len(images) // SEVERITIES
    part = slice((level - 1) * count, level * count)
    numbers = _labels(folder, len(images))[part].astype(np.int64)
    own = _class_names(folder, numbers, images.shape[1:])
    names = class_names or own
    check_spare_names(folder / LABELS, numbers, class_names, own)
    dataset = Dataset(
        images=images[part],
        labels=numbers,
        class_names=names_for(folder / LABELS, numbers, names),
        name=f"{folder.name}-{name}-{level}",
    )
    return dataset if labels == "fine" else _coarse(folder, dataset)


def checked_severity(severity: int) -> int:
    """Return a severity, 1 to 5, or raise a TypeError or ValueError."""
    return checked_range("severity", severity, 1, SEVERITIES)


def _images(folder: Path, name: str) -> Uint8Array:
    path = folder / f"{name}.npy"
    if not path.is_file():
        raise missing(
            path,
            f"no such file (the folder has {', '.join(_names(folder)) or 'no array'})",
            "add it, with `pmt corrupt` for instance, or move the folder away to have the clean "
            "images corrupted",
        )
    images: Array = map_npy(path, REMEDY)
    is_images = images.dtype == np.uint8 and images.ndim in (3, 4) and 0 not in images.shape
    if not is_images or len(images) % SEVERITIES:
        raise damaged(
            path,
            f"is {images.dtype} of shape {images.shape}, not uint8 of shape (5 N, H, W, C)",
            REMEDY,
        )
    images = with_four_axes(images)
    if has_channels_first(images):
        raise channels_first(path, f"has shape {images.shape}")
    return images


def _labels(folder: Path, count: int) -> Array:
    path = folder / LABELS
    labels = map_npy(path, REMEDY)
    if labels.dtype.kind not in "iu" or labels.shape != (count,):
        raise damaged(
            path,
            f"is {labels.dtype} of shape {labels.shape}, not integers of shape ({count},), one an "
            "image",
            REMEDY,
        )
    rounds = labels.reshape(SEVERITIES, -1)
    if not np.array_equal(rounds, np.broadcast_to(rounds[0], rounds.shape)):
        raise damaged(path, "does not hold the same labels five times, once a severity", REMEDY)
    return labels


def _class_names(folder: Path, labels: Int64Array, shape: tuple[int, ...]) -> Sequence[str] | None:
    manifest = read_manifest(folder)
    if manifest is not None:
        return manifest.class_names
    if shape != (32, 32, 3):
        return None
    classes = int(labels.max()) + 1
    if folder.name != "CIFAR-100-C" and classes <= len(CIFAR10_CLASSES):
        return CIFAR10_CLASSES
    return CIFAR100_CLASSES if classes <= len(CIFAR100_CLASSES) else None


def _coarse(folder: Path, dataset: Dataset) -> Dataset:
    if dataset.class_names == CIFAR100_COARSE_CLASSES:
        return dataset
    if dataset.class_names != CIFAR100_CLASSES:
        raise ValueError(f"labels='coarse': {folder} is not of CIFAR-100; leave the option out")
    return replace(
        dataset,
        labels=np.array(CIFAR100_COARSE_OF_FINE)[dataset.labels],
        class_names=CIFAR100_COARSE_CLASSES,
    )
