"""Oxford-IIIT Pets: 7,349 images of 37 breeds of cats and dogs.

Source of the format: O. M. Parkhi, A. Vedaldi, A. Zisserman and C. V. Jawahar, "Cats and Dogs",
2012; the README of annotations.tar.gz.
"""

from __future__ import annotations

from pathlib import Path

from pmt.datasets.files import Problems, read_rows, whole
from pmt.datasets.image_files import ImageFiles, listed_files

LISTS = {"train": "trainval.txt", "test": "test.txt"}


def has_oxford_pets(folder: Path) -> bool:
    """Whether the folder holds the lists of Oxford-IIIT Pets."""
    return (folder / "annotations" / LISTS["train"]).is_file()


def list_oxford_pets(folder: Path, split: str) -> ImageFiles:
    """List the images of ``annotations/trainval.txt`` (3,680) or ``test.txt`` (3,669).

    A line is ``Abyssinian_100 1 1 1``: image, breed 1 to 37, species, breed within the species.
    """
    path = folder / "annotations" / LISTS[split]
    rows = [(image, whole(path, breed)) for image, breed, *_ in read_rows(path, 4)]
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
    for list_name in LISTS.values():
        path = folder / "annotations" / list_name
        if not path.is_file():
            continue
        for image, breed, *_ in read_rows(path, 4):
            name = image.rpartition("_")[0]
            known = names.setdefault(whole(path, breed), name)
            if known != name:
                problem = f"breed {breed} is {known!r}, but {image} has it, too"
                problems.add(path, problem, "download the lists again")
    for number in range(1, max(names) + 1):
        if number not in names:
            path = folder / "annotations"
            problems.add(path, f"no image of breed {number}", "download the lists again")
    problems.raise_if_any()
    return [names[number] for number in sorted(names)]
