"""Stanford Cars: 16,185 images of 196 models of cars, with bounding boxes.

Source of the format: J. Krause, M. Stark, J. Deng and L. Fei-Fei, "3D Object Representations for
Fine-Grained Categorization", 2013; the README.txt of its car_devkit.tgz.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pmt.datasets.files import missing
from pmt.datasets.image_files import ImageFiles, listed_files
from pmt.datasets.mat_file import field, read_mat, texts, whole_numbers

CORNERS = ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2")
ANNOTATIONS = {"train": "cars_train_annos.mat", "test": "cars_test_annos_withlabels.mat"}


def has_stanford_cars(folder: Path) -> bool:
    """Whether the folder holds the images or the annotations of Stanford Cars."""
    return any((folder / f"cars_{split}").is_dir() for split in ANNOTATIONS) or any(
        (place / "cars_meta.mat").is_file() for place in (folder, folder / "devkit")
    )


def list_stanford_cars(folder: Path, split: str) -> ImageFiles:
    """List the images of ``cars_train/`` or ``cars_test/`` with their classes and boxes.

    The ``.mat`` files lie in ``devkit/`` or beside the image folders. There are 8,144 and 8,041
    images; the test labels are in ``cars_test_annos_withlabels.mat``, which is not in the devkit.
    """
    path = _annotation_file(folder, ANNOTATIONS[split])
    (annotations,) = read_mat(path, "annotations")
    meta_path = _annotation_file(folder, "cars_meta.mat")
    (names,) = read_mat(meta_path, "class_names")
    corners = [whole_numbers(path, name, field(path, annotations, name)) for name in CORNERS]
    # Both corners are pixels inside, counted from 1.
    boxes = np.stack(corners, axis=1) - np.array([1, 1, 0, 0])
    images = folder / f"cars_{split}"
    if (images / images.name).is_dir():  # as some mirrors pack it
        images = images / images.name
    return listed_files(
        folder,
        [images / name for name in texts(path, "fname", field(path, annotations, "fname"))],
        whole_numbers(path, "class", field(path, annotations, "class")) - 1,
        texts(meta_path, "class_names", names),
        "stanford-cars",
        annotation=path,
        boxes=boxes.astype(np.float64),
    )


def _annotation_file(folder: Path, name: str) -> Path:
    for place in (folder / "devkit", folder):
        if (place / name).is_file():
            return place / name
    remedy = "put it there, from car_devkit.tgz"
    if name == ANNOTATIONS["test"]:
        remedy = "put it there; cars_test_annos.mat of the devkit has no labels"
    raise missing(folder / "devkit" / name, "no such file", remedy)
