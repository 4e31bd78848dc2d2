"""Small copies of data sets in their official layouts, each image of one color."""

from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

Color = tuple[int, int, int]


def color(number: int) -> Color:
    """The color of image `number`: survives JPEG within a few units."""
    return (40 * number % 256, 255 - 40 * number % 256, 128)


def write_image(path: Path, number: int, size: tuple[int, int] = (24, 16)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, color(number)).save(path, quality=95)


def numbers_of(images: np.ndarray) -> list[int]:
    """Which `color` each image has."""
    reds = images[:, images.shape[1] // 2, images.shape[2] // 2, 0].astype(int)
    return [min(range(6), key=lambda n: abs(color(n)[0] - red)) for red in reds]


def write_cars(root: Path) -> Path:
    """Two training and two test images of two classes."""
    fields = ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "fname")
    kinds = [(name, object) for name in fields]
    rows = {
        "train": [(1, 1, 24, 16, 1, "00001.jpg"), (9, 5, 16, 12, 2, "00002.jpg")],
        "test": [(1, 1, 24, 16, 2, "00001.jpg"), (1, 1, 24, 16, 1, "00002.jpg")],
    }
    devkit = root / "devkit"
    devkit.mkdir(parents=True)
    for split, entries in rows.items():
        for number, row in enumerate(entries, 1):
            write_image(root / f"cars_{split}" / row[5], number)
        array = np.array([tuple(row) for row in entries], kinds).reshape(1, -1)
        name = {"train": "train_annos", "test": "test_annos_withlabels"}[split]
        savemat(devkit / f"cars_{name}.mat", {"annotations": array})
    names = np.array(["AM General Hummer SUV 2000", "Ram C/V Cargo Van Minivan 2012"], object)
    savemat(devkit / "cars_meta.mat", {"class_names": names.reshape(1, -1)})
    return root


def write_cub(root: Path) -> Path:
    names = ("001.Black_footed_Albatross", "002.Laysan_Albatross")
    images = [f"{names[i % 2]}/{names[i % 2][4:]}_{i:04d}.jpg" for i in range(4)]
    for number, name in enumerate(images):
        write_image(root / "images" / name, number)
    lines = {
        "images.txt": [f"{i + 1} {name}" for i, name in enumerate(images)],
        "image_class_labels.txt": [f"{i + 1} {i % 2 + 1}" for i in range(4)],
        "train_test_split.txt": ["1 1", "2 1", "3 0", "4 0"],
        "classes.txt": [f"{i + 1} {name}" for i, name in enumerate(names)],
    }
    for name, content in lines.items():
        (root / name).write_text("\n".join(content) + "\n")
    return root


def write_flowers(root: Path) -> Path:
    for number in range(1, 6):
        write_image(root / "jpg" / f"image_{number:05d}.jpg", number)
    savemat(root / "imagelabels.mat", {"labels": np.array([[77, 1, 102, 1, 2]], np.uint8)})
    sets = {"trnid": [[1, 4]], "valid": [[3]], "tstid": [[5, 2]]}
    savemat(root / "setid.mat", {name: np.array(v, np.uint16) for name, v in sets.items()})
    return root


def write_food(root: Path) -> Path:
    (root / "meta").mkdir(parents=True)
    (root / "meta" / "classes.txt").write_text("apple_pie\nwaffles\n")
    for split, first in (("train", 0), ("test", 3)):
        keys = [f"apple_pie/{first}", f"waffles/{first + 1}", f"apple_pie/{first + 2}"]
        (root / "meta" / f"{split}.txt").write_text("\n".join(keys) + "\n")
        for number, key in enumerate(keys, first):
            write_image(root / "images" / f"{key}.jpg", number)
    return root


def write_pets(root: Path) -> Path:
    lists = {
        "trainval.txt": ["Abyssinian_1 1 1 1", "american_bulldog_10 2 2 1", "Abyssinian_2 1 1 1"],
        "test.txt": ["american_bulldog_3 2 2 1", "Abyssinian_4 1 1 1"],
    }
    (root / "annotations").mkdir(parents=True)
    number = 0
    for name, lines in lists.items():
        (root / "annotations" / name).write_text("\n".join(lines) + "\n")
        for line in lines:
            write_image(root / "images" / f"{line.split()[0]}.jpg", number)
            number += 1
    return root
