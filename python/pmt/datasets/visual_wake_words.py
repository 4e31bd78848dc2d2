"""Visual Wake Words: images of COCO, each with or without a person.

Source of the rule: A. Chowdhery, P. Warden, J. Shlens, A. Howard and R. Rhodes, "Visual Wake Words
Dataset", 2019 (arXiv:1906.05721); of the format: https://cocodataset.org/#format-data.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pmt._util.parsing import parse_json
from pmt.datasets.files import REMEDY, Problems, damaged, missing, read_bytes
from pmt.datasets.image_files import ImageFiles, listed_files

CLASS_NAMES = ("not-person", "person")
# A person counts if it takes more than this share of the image.
SMALLEST_SHARE = 0.005
# In this order: the Visual Wake Words files, the usual split of COCO 2014, COCO itself.
LISTS = {
    "train": ("train", "maxitrain", "train2014", "train2017"),
    "test": ("val", "minival", "val2014", "val2017"),
}
IMAGE_FOLDERS = ("", "images", "all", "all2014", "all2017", "train", "val", "train2014", "val2014",
                 "train2017", "val2017")  # fmt: skip


def has_visual_wake_words(folder: Path) -> bool:
    """Whether the folder holds COCO annotations of instances."""
    return any(_find(folder, split) is not None for split in LISTS)


def list_visual_wake_words(folder: Path, split: str) -> ImageFiles:
    """List the images of COCO's or Visual Wake Words' annotations, in the order of their numbers.

    The label is 1 where an annotation of a person has an `area` above 0.5 % of the image, else 0.

    The folder holds ``annotations/instances_train.json`` (or maxitrain, train2014, train2017; for
    the test split val, minival, val2014, val2017) and the images, in ``images/``, ``all/``,
    ``train2014/`` and the like, or beside them.
    """
    path = _find(folder, split)
    if path is None:
        path = folder / "annotations" / f"instances_{LISTS[split][0]}.json"
        raise missing(path, f"no such file, so there is no {split} split", "add it")
    images, with_person = _read(path)
    places = {
        name: folder / place / name
        for place in reversed(IMAGE_FOLDERS)
        if (folder / place).is_dir()
        for name in os.listdir(folder / place)
    }
    numbers = sorted(images)
    names = [images[number] for number in numbers]
    return listed_files(
        folder,
        [places.get(name, folder / "images" / name) for name in names],
        [int(number in with_person) for number in numbers],
        CLASS_NAMES,
        "visual-wake-words",
        annotation=path,
        every_class=False,
    )


def _find(folder: Path, split: str) -> Path | None:
    names = [f"instances_{name}.json" for name in LISTS[split]]
    paths = [place / name for name in names for place in (folder / "annotations", folder)]
    return next((path for path in paths if path.is_file()), None)


def _read(path: Path) -> tuple[dict[int, str], set[int]]:
    """Return the file name of each image, and the numbers of those with a person."""
    content = _json(path)
    problems = Problems(path.parent)
    names: dict[int, str] = {}
    areas: dict[int, float] = {}
    for position, image in enumerate(content["images"]):
        try:
            number, name = int(image["id"]), str(image["file_name"])
            areas[number] = float(image["width"]) * float(image["height"])
            if areas[number] <= 0 or Path(name).name != name or not name:
                raise ValueError
            names[number] = name
        except (KeyError, TypeError, ValueError, OverflowError):
            problem = "no id, plain file_name, width or height"
            problems.add(f"{path}: images[{position}]", problem, REMEDY)
    person = _person(path, content["categories"])
    found: set[int] = set()
    for position, entry in enumerate(content["annotations"]):
        try:
            number, area = int(entry["image_id"]), float(entry.get("area", 0))
            if int(entry["category_id"]) == person and area > SMALLEST_SHARE * areas[number]:
                found.add(number)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
            problem = "no category_id, or an image_id that is not listed"
            problems.add(f"{path}: annotations[{position}]", problem, REMEDY)
    problems.raise_if_any()
    return names, found


def _person(path: Path, categories: list[Any]) -> int:
    for category in categories:
        if isinstance(category, dict) and category.get("name") == "person":
            number = category.get("id")
            if isinstance(number, int):
                return number
    raise damaged(path, "has no category 'person'", REMEDY)


def _json(path: Path) -> dict[str, list[Any]]:
    def without_outlines(content: dict[str, Any]) -> dict[str, Any]:
        # Most of COCO's half a gigabyte of text: dropped as it is read.
        content.pop("segmentation", None)
        return content

    content = parse_json(read_bytes(path), path, REMEDY, object_hook=without_outlines)
    lists: dict[str, list[Any]] = {}
    for key in ("images", "annotations", "categories"):
        if not isinstance(content, dict) or not isinstance(content.get(key), list):
            raise damaged(path, f"has no list {key!r}", REMEDY)
        lists[key] = content[key]
    return lists
