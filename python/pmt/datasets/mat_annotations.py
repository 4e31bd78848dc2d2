"""The image sets that are annotated in MATLAB files: Stanford Cars and Oxford Flowers-102.

Sources of the formats: J. Krause, M. Stark, J. Deng and L. Fei-Fei, "3D Object Representations for
Fine-Grained Categorization", 2013, and the README.txt of car_devkit.tgz (16,185 images of 196
models of cars, with bounding boxes); M.-E. Nilsback and A. Zisserman, "Automated Flower
Classification over a Large Number of Classes", 2008, and
https://www.robots.ox.ac.uk/~vgg/data/flowers/102/ (8,189 images of 102 flowers).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pmt.datasets.class_names import FLOWERS102_CLASSES
from pmt.datasets.files import REMEDY, damaged, missing
from pmt.datasets.image_files import ImageFiles, listed_files, unpacked_root
from pmt.datasets.mat_file import field, read_mat, texts, whole_numbers

CARS_CORNERS = ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2")
CARS_ANNOTATIONS = {"train": "cars_train_annos.mat", "test": "cars_test_annos_withlabels.mat"}
FLOWERS102_FOLDER = "flowers-102"
# The published split is 1,020 + 1,020 + 6,149; work on transfer trains on the first two.
FLOWERS102_SETS = {"train": ("trnid", "valid"), "test": ("tstid",)}


def has_stanford_cars(folder: Path) -> bool:
    """Whether the folder holds the images or the annotations of Stanford Cars."""
    return any((folder / f"cars_{split}").is_dir() for split in CARS_ANNOTATIONS) or any(
        (place / "cars_meta.mat").is_file() for place in (folder, folder / "devkit")
    )


def list_stanford_cars(folder: Path, split: str) -> ImageFiles:
    """List the images of ``cars_train/`` or ``cars_test/`` with their classes and boxes.

    The ``.mat`` files lie in ``devkit/`` or beside the image folders. There are 8,144 and 8,041
    images; the test labels are in ``cars_test_annos_withlabels.mat``, which is not in the devkit.
    """
    path = _annotation_file(folder, CARS_ANNOTATIONS[split])
    (annotations,) = read_mat(path, "annotations")
    meta_path = _annotation_file(folder, "cars_meta.mat")
    (names,) = read_mat(meta_path, "class_names")
    corners = [whole_numbers(path, name, field(path, annotations, name)) for name in CARS_CORNERS]
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
    if name == CARS_ANNOTATIONS["test"]:
        remedy = "put it there; cars_test_annos.mat of the devkit has no labels"
    raise missing(folder / "devkit" / name, "no such file", remedy)


def has_flowers102(folder: Path) -> bool:
    """Whether the folder, or flowers-102 in it, holds the annotation files."""
    root = unpacked_root(folder, FLOWERS102_FOLDER)
    return any((root / name).is_file() for name in ("imagelabels.mat", "setid.mat"))


def list_flowers102(folder: Path, split: str) -> ImageFiles:
    """List the images ``jpg/image_00001.jpg``, ... of one split.

    The folder holds ``jpg/``, ``imagelabels.mat`` and ``setid.mat``; or flowers-102 with them.
    "train" is the published training and validation sets, 2,040 images; "test" has 6,149.
    """
    root = unpacked_root(folder, FLOWERS102_FOLDER)
    label_path, set_path = root / "imagelabels.mat", root / "setid.mat"
    (values,) = read_mat(label_path, "labels")
    labels = whole_numbers(label_path, "labels", values)
    sets = zip(FLOWERS102_SETS[split], read_mat(set_path, *FLOWERS102_SETS[split]), strict=True)
    numbers = np.concatenate([whole_numbers(set_path, name, values) for name, values in sets])
    wrong = numbers[(numbers < 1) | (numbers > len(labels))]
    if wrong.size:
        problem = f"lists image {wrong[0]}, imagelabels.mat has {len(labels)}"
        raise damaged(set_path, problem, REMEDY)
    return listed_files(
        root,
        [root / "jpg" / f"image_{number:05d}.jpg" for number in numbers.tolist()],
        labels[numbers - 1] - 1,
        FLOWERS102_CLASSES,
        "flowers102",
        annotation=set_path,
        every_class=False,
    )
