"""CUB-200-2011: 11,788 images of 200 species of birds, with bounding boxes.

Source of the format: C. Wah, S. Branson, P. Welinder, P. Perona and S. Belongie, "The Caltech-UCSD
Birds-200-2011 Dataset", 2011; the README of CUB_200_2011.tgz.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from pmt.datasets.files import REMEDY, damaged, read_numbered, read_rows, real, whole
from pmt.datasets.image_files import ImageFiles, listed_files, unpacked_root

ARCHIVE_FOLDER = "CUB_200_2011"


def has_cub200(folder: Path) -> bool:
    """Whether the folder, or CUB_200_2011 in it, holds the annotation files."""
    return (unpacked_root(folder, ARCHIVE_FOLDER) / "image_class_labels.txt").is_file()


def list_cub200(folder: Path, split: str) -> ImageFiles:
    """List the images that ``train_test_split.txt`` puts into the split (5,994 and 5,794).

    The folder holds ``images/``, ``images.txt``, ``image_class_labels.txt``,
    ``train_test_split.txt``, ``classes.txt`` and, for boxes, ``bounding_boxes.txt``; or
    CUB_200_2011 with them.
    """
    root = unpacked_root(folder, ARCHIVE_FOLDER)
    names = read_numbered(root / "images.txt")
    labels = _one_each(root / "image_class_labels.txt", names)
    in_train = _one_each(root / "train_test_split.txt", names)
    classes = read_numbered(root / "classes.txt")
    wanted = "1" if split == "train" else "0"
    chosen = [number for number in sorted(names) if in_train[number] == wanted]
    label_path = root / "image_class_labels.txt"
    return listed_files(
        root,
        [root / "images" / names[number] for number in chosen],
        [whole(label_path, labels[number]) - 1 for number in chosen],
        # Folders are called 001.Black_footed_Albatross.
        [classes[number].partition(".")[2] or classes[number] for number in sorted(classes)],
        "cub200",
        annotation=root / "images.txt",
        boxes=_boxes(root / "bounding_boxes.txt", names, chosen),
    )


def _one_each(path: Path, names: dict[int, str]) -> dict[int, str]:
    """Read a file that must say something about each image, and about no other."""
    values = read_numbered(path)
    _check_numbers(path, set(values), names)
    return values


def _check_numbers(path: Path, numbers: set[int], names: dict[int, str]) -> None:
    apart = sorted(numbers ^ set(names))
    if apart:
        problem = f"does not number the same images as images.txt, for instance {apart[0]}"
        raise damaged(path, problem, REMEDY)


def _boxes(path: Path, names: dict[int, str], chosen: list[int]) -> npt.NDArray[np.float64] | None:
    if not path.is_file():
        return None
    corners = {}
    for number, *words in read_rows(path, 5):
        left, top, width, height = (real(path, word) for word in words)
        corners[whole(path, number)] = (left, top, left + width, top + height)
    _check_numbers(path, set(corners), names)
    return np.array([corners[number] for number in chosen]).reshape(-1, 4)
