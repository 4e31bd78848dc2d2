"""The image sets that are annotated in MATLAB files: Stanford Cars and Oxford Flowers-102.

Sources of the formats: J. Krause, M. Stark, J. Deng and L. Fei-Fei, "3D Object Representations for
Fine-Grained Categorization", 2013, and the README.txt of car_devkit.tgz (16,185 images of 196
models of cars, with bounding boxes); M.-E. Nilsback and A. Zisserman, "Automated Flower
Classification over a Large Number of Classes", 2008, and
https://www.robots.ox.ac.uk/~vgg/data/flowers/102/ (8,189 images of 102 flowers).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._util.extras import import_extra
from pmt.datasets.class_names import FLOWERS102_CLASSES
from pmt.datasets.files import REMEDY, damaged, missing
from pmt.datasets.image_files import ImageFiles, listed_files, unpacked_root

CARS_CORNERS = ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2")
CARS_ANNOTATIONS = {"train": "cars_train_annos.mat", "test": "cars_test_annos_withlabels.mat"}
FLOWERS102_FOLDER = "flowers-102"
# The published split is 1,020 + 1,020 + 6,149; work on transfer trains on the first two.
# The largest of the annotation files has 185,758 bytes.
LARGEST_MAT = 1 << 20
Values = npt.NDArray[Any]
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
    corners = [_whole_numbers(path, name, _field(path, annotations, name)) for name in CARS_CORNERS]
    # Both corners are pixels inside, counted from 1.
    boxes = np.stack(corners, axis=1) - np.array([1, 1, 0, 0])
    images = folder / f"cars_{split}"
    if (images / images.name).is_dir():  # as some mirrors pack it
        images = images / images.name
    return listed_files(
        folder,
        [images / name for name in _texts(path, "fname", _field(path, annotations, "fname"))],
        _whole_numbers(path, "class", _field(path, annotations, "class")) - 1,
        _texts(meta_path, "class_names", names),
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
    labels = _whole_numbers(label_path, "labels", values)
    sets = zip(FLOWERS102_SETS[split], read_mat(set_path, *FLOWERS102_SETS[split]), strict=True)
    numbers = np.concatenate([_whole_numbers(set_path, name, values) for name, values in sets])
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


def read_mat(path: Path, *names: str) -> list[Values]:
    """Read variables of a .mat file; a file too large for annotations is refused."""
    if not path.is_file():
        raise missing(path, "no such file", "download the annotation files, too")
    if path.stat().st_size > LARGEST_MAT:
        problem = f"has {path.stat().st_size:,} bytes, too many for an annotation file"
        raise damaged(path, problem, REMEDY)
    scipy = import_extra("scipy.io", "reading .mat files needs SciPy", "data")
    try:
        content = scipy.loadmat(path, variable_names=names)
    except Exception as error:  # whatever stumbles over the damage
        raise damaged(path, f"not a readable .mat file ({error})", REMEDY) from None
    for name in names:
        if name not in content:
            raise damaged(path, f"holds no variable {name!r}", REMEDY)
    return [np.asarray(content[name]) for name in names]


def _field(path: Path, struct: Values, name: str) -> Values:
    if name not in (struct.dtype.names or ()):
        raise damaged(path, f"its annotations have no field {name!r}", REMEDY)
    return np.asarray(struct[name])


def _whole_numbers(path: Path, what: str, values: Values) -> npt.NDArray[np.int64]:
    """Return numbers, each in an array of its own or all in one, as int64 of shape (N,)."""
    try:
        numbers = np.array([np.asarray(value).item() for value in values.flat], np.float64)
    except (ValueError, TypeError):
        raise damaged(path, f"{what} holds something else than numbers", REMEDY) from None
    if not np.all((numbers == np.rint(numbers)) & (abs(numbers) < 2**31)):
        raise damaged(path, f"{what} holds something else than whole numbers", REMEDY)
    return numbers.astype(np.int64)


def _texts(path: Path, what: str, values: Values) -> list[str]:
    """Return the texts of a cell array or of a field."""
    found = [np.ravel(np.asarray(value)) for value in values.flat]
    if any(value.size > 1 or (value.size and value.dtype.kind != "U") for value in found):
        raise damaged(path, f"{what} holds something else than texts", REMEDY)
    return [str(value[0]).strip() if value.size else "" for value in found]
