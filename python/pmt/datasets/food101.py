"""Food-101: 101,000 images of 101 dishes.

Source of the format: L. Bossard, M. Guillaumin and L. Van Gool, "Food-101 - Mining Discriminative
Components with Random Forests", 2014; the README.txt of food-101.tar.gz.
"""

from __future__ import annotations

from pathlib import Path

from pmt.datasets.files import Problems, read_rows
from pmt.datasets.image_files import ImageFiles, listed_files, unpacked_root

ARCHIVE_FOLDER = "food-101"


def has_food101(folder: Path) -> bool:
    """Whether the folder, or food-101 in it, holds the lists of Food-101."""
    return (unpacked_root(folder, ARCHIVE_FOLDER) / "meta" / "classes.txt").is_file()


def list_food101(folder: Path, split: str) -> ImageFiles:
    """List the images of ``meta/train.txt`` (75,750) or ``meta/test.txt`` (25,250).

    The folder holds ``images/CLASS/NUMBER.jpg`` and ``meta/`` with ``classes.txt`` and both lists;
    or food-101 with them.
    """
    root = unpacked_root(folder, ARCHIVE_FOLDER)
    classes = [name for (name,) in read_rows(root / "meta" / "classes.txt", 1)]
    path = root / "meta" / f"{split}.txt"
    keys = [key for (key,) in read_rows(path, 1)]
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
