"""The layouts of image files on disk: which one a folder has, and its list of images."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pmt._util.checks import SPLITS
from pmt.datasets.files import Problems, damaged, missing
from pmt.datasets.image_files import ImageFiles, renamed
from pmt.datasets.mat_annotations import (
    has_flowers102,
    has_stanford_cars,
    list_flowers102,
    list_stanford_cars,
)
from pmt.datasets.text_annotations import (
    has_cub200,
    has_food101,
    has_oxford_pets,
    list_cub200,
    list_food101,
    list_oxford_pets,
)
from pmt.datasets.visual_wake_words import has_visual_wake_words, list_visual_wake_words

ARRAY_SUFFIXES = frozenset((".npz", ".npy", ".mat", ".pkl", ".bin", ".h5"))
SUFFIXES = frozenset((".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm"))


def sub_folders(folder: Path) -> list[Path]:
    """List the visible sub-folders, in the order of their names."""
    return sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))


def list_image_folder(
    folder: Path, split: str, class_names: Sequence[str] | None = None
) -> ImageFiles:
    """List the images of one split; the names of the sub-folders are the classes.

    The folder holds ``train/CLASS/`` and ``test/CLASS/``, or ``CLASS/`` directly: then all images
    are given for either split. `class_names` are the sub-folders in the order of their labels; by
    default they are sorted, over both splits, so that a class has one label in both.
    """
    root = _split_folder(folder, split)
    problems = Problems(folder)
    names = _class_names(folder, class_names, problems)
    files: list[tuple[Path, int]] = []
    for class_folder in sub_folders(root):
        paths = _image_files(class_folder)
        if not paths:
            problems.add(class_folder, *_without_images(class_folder))
        _warn_of_arrays(class_folder, len(paths))
        if class_folder.name in names:
            files += [(path, names.index(class_folder.name)) for path in paths]
    problems.raise_if_any()
    return ImageFiles(
        folder=folder,
        paths=tuple(path for path, _ in files),
        labels=np.array([label for _, label in files], np.int64),
        class_names=names,
        name=folder.name or "images",
    )


def _split_folder(folder: Path, split: str) -> Path:
    if not any((folder / name).is_dir() for name in SPLITS):
        return folder
    root = folder / split
    if not root.is_dir():
        raise missing(root, f"no such folder, so there is no {split} split", "add it")
    if not sub_folders(root):
        raise damaged(root, "no class folders in it", f"put the images into {split}/CLASS/")
    return root


def _class_names(
    folder: Path, class_names: Sequence[str] | None, problems: Problems
) -> tuple[str, ...]:
    """Names over both splits, so that a class absent from one of them shifts no label."""
    splits = [folder / name for name in SPLITS if (folder / name).is_dir()] or [folder]
    found = sorted({path.name for root in splits for path in sub_folders(root)})
    if class_names is None:
        return tuple(found)
    for name in found:
        if name not in class_names:
            problem = f"class folder {name!r} is not in class_names"
            problems.add(folder, problem, "list it or move it away")
    for name in class_names:
        if name not in found:
            problem = f"no class folder {name!r}, which class_names lists"
            problems.add(folder, problem, "correct the name")
    return tuple(class_names)


def _image_files(class_folder: Path) -> list[Path]:
    return sorted(
        path
        for path in class_folder.iterdir()
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
    )


def _without_images(class_folder: Path) -> tuple[str, str]:
    """Return what a class folder without an image holds, and what helps."""
    problem = "the class folder holds no image"
    inner = sub_folders(class_folder)
    if inner:
        names = ", ".join(path.name for path in inner[:3]) + (", ..." if len(inner) > 3 else "")
        remedy = f"where these are the classes, give {class_folder.name} itself as the data set"
        return f"{problem}, but the folders {names}", remedy
    arrays = _array_files(class_folder)
    if arrays:
        return f"{problem}, but {arrays[0].name}", "unpack the images, one folder a class"
    return problem, "add images or remove the folder"


def _array_files(class_folder: Path) -> list[Path]:
    return sorted(p for p in class_folder.iterdir() if p.suffix.lower() in ARRAY_SUFFIXES)


def _warn_of_arrays(class_folder: Path, images: int) -> None:
    """Warn where the images of a class may be sheets, whose labels are in an array beside them."""
    arrays = _array_files(class_folder)
    if images and arrays:
        warnings.warn(
            f"{class_folder}: holds {arrays[0].name} beside {images:,} images, as a data set does "
            "that is packed into sheets of many images; all of them are read as images of the "
            f"class {class_folder.name!r}; unpack them, one folder a class, or move the array away",
            stacklevel=2,
        )


class _Layout(NamedTuple):
    title: str
    has: Callable[[Path], bool]
    list_files: Callable[[Path, str], ImageFiles]


OFFICIAL = (
    _Layout("Stanford Cars", has_stanford_cars, list_stanford_cars),
    _Layout("CUB-200-2011", has_cub200, list_cub200),
    _Layout("Flowers-102", has_flowers102, list_flowers102),
    _Layout("Food-101", has_food101, list_food101),
    _Layout("Oxford-IIIT Pets", has_oxford_pets, list_oxford_pets),
    _Layout("Visual Wake Words", has_visual_wake_words, list_visual_wake_words),
)


def official_titles() -> str:
    """Name the data sets whose official files are read."""
    *titles, last = (layout.title for layout in OFFICIAL)
    return f"{', '.join(titles)} or {last}"


def find_image_files(
    folder: Path, split: str, class_names: Sequence[str] | None = None
) -> ImageFiles | None:
    """List the images of one split of a folder; None if it holds no known layout of images."""
    for layout in OFFICIAL:
        if layout.has(folder):
            return renamed(layout.list_files(folder, split), class_names)
    if sub_folders(folder):
        return list_image_folder(folder, split, class_names)
    return None
