"""The image sets that are annotated in files of their own.

Sources of the formats: C. Wah, S. Branson, P. Welinder, P. Perona and S. Belongie, "The
Caltech-UCSD Birds-200-2011 Dataset", 2011, and the README of CUB_200_2011.tgz (11,788 images of 200
species of birds); L. Bossard, M. Guillaumin and L. Van Gool, "Food-101 -
Mining Discriminative Components with Random Forests", 2014, and the README.txt of food-101.tar.gz
(101,000 images of 101 dishes); O. M. Parkhi, A. Vedaldi, A. Zisserman and C. V. Jawahar, "Cats and
Dogs", 2012, and the README of annotations.tar.gz (7,349 images of 37 breeds); J. Krause, M. Stark,
J. Deng and L. Fei-Fei, "3D Object Representations for Fine-Grained Categorization", 2013, and the
README.txt of car_devkit.tgz (16,185 images of 196 models of cars); M.-E.
Nilsback and A. Zisserman, "Automated Flower Classification over a Large Number of Classes", 2008,
and https://www.robots.ox.ac.uk/~vgg/data/flowers/102/ (8,189 images of 102 flowers).
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pmt._util.arrays import Array, Int64Array
from pmt._util.extras import import_extra
from pmt.datasets.catalog import FLOWERS102_CLASSES
from pmt.datasets.files import REMEDY, Problems, damaged, missing, read_bytes
from pmt.datasets.image_files import ImageFiles, listed_files

PETS_LISTS = {"train": "trainval.txt", "test": "test.txt"}


def list_cub200(root: Path, split: str) -> ImageFiles:
    """List the images that ``train_test_split.txt`` puts into the split (5,994 and 5,794).

    The folder holds ``images/``, ``images.txt``, ``image_class_labels.txt``,
    ``train_test_split.txt`` and ``classes.txt``.
    """
    names = _read_numbered(root / "images.txt")
    labels = _one_each(root / "image_class_labels.txt", names)
    in_train = _one_each(root / "train_test_split.txt", names)
    classes = _read_numbered(root / "classes.txt")
    wanted = "1" if split == "train" else "0"
    chosen = [number for number in sorted(names) if in_train[number] == wanted]
    label_path = root / "image_class_labels.txt"
    return listed_files(
        root,
        [root / "images" / names[number] for number in chosen],
        [_whole(label_path, labels[number]) - 1 for number in chosen],
        # Folders are called 001.Black_footed_Albatross.
        [classes[number].partition(".")[2] or classes[number] for number in sorted(classes)],
        "cub200",
        annotation=root / "images.txt",
    )


def _one_each(path: Path, names: dict[int, str]) -> dict[int, str]:
    """Read a file that must say something about each image, and about no other."""
    values = _read_numbered(path)
    _check_numbers(path, set(values), names)
    return values


def _check_numbers(path: Path, numbers: set[int], names: dict[int, str]) -> None:
    apart = sorted(numbers ^ set(names))
    if apart:
        problem = f"does not number the same images as images.txt, for instance {apart[0]}"
        raise damaged(path, problem, REMEDY)


def list_food101(root: Path, split: str) -> ImageFiles:
    """List the images of ``meta/train.txt`` (75,750) or ``meta/test.txt`` (25,250).

    The folder holds ``images/CLASS/NUMBER.jpg`` and ``meta/`` with ``classes.txt`` and both lists.
    """
    classes = [name for (name,) in _read_rows(root / "meta" / "classes.txt", 1)]
    path = root / "meta" / f"{split}.txt"
    keys = [key for (key,) in _read_rows(path, 1)]
    label_of = {name: label for label, name in enumerate(classes)}
    problems = Problems(root)
    for name in dict.fromkeys(key.partition("/")[0] for key in keys):
        if name not in label_of:
            problem = f"lists class {name!r}, which classes.txt does not"
            problems.add(path, problem, "download the lists again")
    problems.raise_if_any()
    return listed_files(
        root,
        [root / "images" / f"{key}.jpg" for key in keys],
        [label_of[key.partition("/")[0]] for key in keys],
        classes,
        "food101",
        annotation=path,
    )


def list_oxford_pets(folder: Path, split: str) -> ImageFiles:
    """List the images of ``annotations/trainval.txt`` (3,680) or ``test.txt`` (3,669).

    A line is ``Abyssinian_100 1 1 1``: image, breed 1 to 37, species, breed within the species.
    """
    path = folder / "annotations" / PETS_LISTS[split]
    rows = [(image, _whole(path, breed)) for image, breed, *_ in _read_rows(path, 4)]
    return listed_files(
        folder,
        [folder / "images" / f"{image}.jpg" for image, _ in rows],
        [breed - 1 for _, breed in rows],
        _breeds(folder),
        "oxford-pets",
        annotation=path,
    )


def _breeds(folder: Path) -> list[str]:
    """Names of the breeds, which only the images' names tell, over both lists."""
    names: dict[int, str] = {}
    problems = Problems(folder)
    for list_name in PETS_LISTS.values():
        path = folder / "annotations" / list_name
        if not path.is_file():
            continue
        for image, breed, *_ in _read_rows(path, 4):
            name = image.rpartition("_")[0]
            known = names.setdefault(_whole(path, breed), name)
            if known != name:
                problem = f"breed {breed} is {known!r}, but {image} has it, too"
                problems.add(path, problem, "download the lists again")
    for number in range(1, max(names) + 1):
        if number not in names:
            path = folder / "annotations"
            problems.add(path, f"no image of breed {number}", "download the lists again")
    problems.raise_if_any()
    return [names[number] for number in sorted(names)]


def _read_rows(path: Path, columns: int) -> list[tuple[str, ...]]:
    """Read lines of `columns` words, the last of which may hold blanks.

    Empty lines and those that begin with ``#`` are left out; one ValueError tells of all bad lines.
    """
    problems = Problems(path)
    rows = []
    text = read_bytes(path).decode("utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = tuple(line.strip().split(None, columns - 1))
        if len(words) != columns:
            problem = f"line {number} has {len(words)} words instead of {columns}"
            problems.add(f"{path}:{number}", problem, REMEDY)
            continue
        rows.append(words)
    problems.raise_if_any()
    if not rows:
        raise damaged(path, "holds no line", REMEDY)
    return rows


def _read_numbered(path: Path) -> dict[int, str]:
    """Read lines of a whole number and a text; the numbers are the keys, each once."""
    rows = _read_rows(path, 2)
    numbered = {_whole(path, number): text for number, text in rows}
    if len(numbered) != len(rows):
        raise damaged(path, "holds a number twice", REMEDY)
    return numbered


def _whole(path: Path, text: str) -> int:
    """Return a word as a whole number, or raise a ValueError that names the file."""
    try:
        return int(text)
    except ValueError:
        raise damaged(path, f"holds {text!r} in place of a whole number", REMEDY) from None


CARS_ANNOTATIONS = {"train": "cars_train_annos.mat", "test": "cars_test_annos_withlabels.mat"}
# The largest of the annotation files has 185,758 bytes.
LARGEST_MAT = 1 << 20
Values = Array
# The published split is 1,020 + 1,020 + 6,149; work on transfer trains on the first two.
FLOWERS102_SETS = {"train": ("trnid", "valid"), "test": ("tstid",)}


def list_stanford_cars(folder: Path, split: str) -> ImageFiles:
    """List the images of ``cars_train/`` or ``cars_test/`` with their classes.

    The ``.mat`` files lie in ``devkit/`` or beside the image folders. There are 8,144 and 8,041
    images; the test labels are in ``cars_test_annos_withlabels.mat``, which is not in the devkit.
    """
    path = _annotation_file(folder, CARS_ANNOTATIONS[split])
    (annotations,) = read_mat(path, "annotations")
    meta_path = _annotation_file(folder, "cars_meta.mat")
    (names,) = read_mat(meta_path, "class_names")
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
    )


def _annotation_file(folder: Path, name: str) -> Path:
    for place in (folder / "devkit", folder):
        if (place / name).is_file():
            return place / name
    remedy = "put it there, from car_devkit.tgz"
    if name == CARS_ANNOTATIONS["test"]:
        remedy = "put it there; cars_test_annos.mat of the devkit has no labels"
    raise missing(folder / "devkit" / name, "no such file", remedy)


def list_flowers102(root: Path, split: str) -> ImageFiles:
    """List the images ``jpg/image_00001.jpg``, ... of one split.

    The folder holds ``jpg/``, ``imagelabels.mat`` and ``setid.mat``. "train" is the published
    training and validation sets, 2,040 images; "test" has 6,149.
    """
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


def _whole_numbers(path: Path, what: str, values: Values) -> Int64Array:
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


class OfficialFiles(NamedTuple):
    """The official files of a data set: any of `shown_by` shows them, `listed` lists a split.

    They are in a folder, or in `unpacked` there, as their archive has them.
    """

    title: str
    shown_by: tuple[str, ...]
    listed: Callable[[Path, str], ImageFiles]
    unpacked: str = ""

    def find(self, folder: Path, split: str) -> ImageFiles | None:
        """List the images of one split of a folder; None if it does not hold these files."""
        inner = folder / self.unpacked
        root = inner if inner.is_dir() else folder
        is_there = any((root / name).exists() for name in self.shown_by)
        return self.listed(root, split) if is_there else None


OFFICIAL = (
    OfficialFiles(
        "Stanford Cars",
        ("cars_train", "cars_test", "cars_meta.mat", "devkit/cars_meta.mat"),
        list_stanford_cars,
    ),
    OfficialFiles("CUB-200-2011", ("image_class_labels.txt",), list_cub200, "CUB_200_2011"),
    OfficialFiles("Flowers-102", ("imagelabels.mat", "setid.mat"), list_flowers102, "flowers-102"),
    OfficialFiles("Food-101", ("meta/classes.txt",), list_food101, "food-101"),
    OfficialFiles("Oxford-IIIT Pets", ("annotations/trainval.txt",), list_oxford_pets),
)
