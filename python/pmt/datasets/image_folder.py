"""Folders of images: a folder a class, in folders of the splits or not."""

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from pmt._util.text import counted
from pmt.datasets.class_names import comparable
from pmt.datasets.files import Problems, damaged, missing
from pmt.datasets.image_files import ImageFiles

SUFFIXES = frozenset(
    (".png", ".jpg", ".jpeg", ".jfif", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm")
)
# Images that Pillow reads only with plug-ins, or not at all.
UNREAD_SUFFIXES = frozenset((".avif", ".heic", ".heif", ".jxl", ".raw", ".dng", ".svg"))
ARRAY_SUFFIXES = frozenset((".npz", ".npy", ".mat", ".pkl", ".bin", ".h5"))
FOLDER = "folder"  # the groups of an image folder are the folders in its classes
# Names of the folder of a split, in any case; the first that is there is taken. A folder `valid`
# is a split beside one of `train` only: elsewhere it may be a class.
_FOLDERS = {
    "train": ("train", "training"),
    "test": ("test", "testing", "val", "valid", "validation"),
}


def sub_folders(folder: Path) -> list[Path]:
    """List the visible sub-folders, in the order of their names."""
    return sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))


def list_image_folder(
    folder: Path, split: str, class_names: Sequence[str] | None = None, *, grouped: bool = False
) -> ImageFiles:
    """List the images of one split; the names of the sub-folders are the classes.

    The folder holds ``train/CLASS/`` and ``test/CLASS/``, or ``CLASS/`` directly: then all images
    are given for either split. Where there is no ``test/``, it is ``val/``, ``valid/`` or
    ``validation/``; case does not matter. `class_names` are the classes in the order of their
    labels; by default the sub-folders are sorted, over both splits, so that a class has one label
    in both. `grouped` reads ``CLASS/GROUP/`` too: images below folders of one name are a group,
    those in a class folder itself are in none.
    """
    root = _split_folder(folder, split)
    problems = Problems(folder)
    places = _class_places(folder, class_names, problems)
    files: list[tuple[Path, int]] = []
    unread: list[Path] = []
    for class_folder in sub_folders(root):
        inner = sub_folders(class_folder) if grouped else []
        paths = [path for place in (class_folder, *inner) for path in _image_files(place)]
        if not paths:
            problems.add(class_folder, *_without_images(class_folder))
        _warn_of_arrays(class_folder, len(paths))
        unread += [
            path for place in (class_folder, *inner) for path in unread_images(place.iterdir())
        ]
        label = places.get(class_folder.name)
        if label is not None:
            files += [(path, label) for path in paths]
    problems.raise_if_any()
    warn_of_unread(root, unread)
    return ImageFiles(
        folder=folder,
        paths=tuple(path for path, _ in files),
        labels=np.array([label for _, label in files], np.int64),
        class_names=tuple(class_names or places),
        name=folder.name or "images",
        groups=tuple(_group(root, path) for path, _ in files) if grouped else None,
    )


def _group(root: Path, path: Path) -> str:
    """Return the name of the folder of an image below its class; nothing in the class itself."""
    inner = path.relative_to(root).parts[1:-1]
    return inner[0] if inner else ""


def _split_folders(folder: Path) -> dict[str, Path]:
    """Return the folder of each split that has one."""
    inner = {path.name.casefold(): path for path in sub_folders(folder)}
    here = {s: [inner[n] for n in names if n in inner] for s, names in _FOLDERS.items()}
    found = {split: places[0] for split, places in here.items() if places}
    return found if "train" in found or "test" in inner else {}


def _split_folder(folder: Path, split: str) -> Path:
    found = _split_folders(folder)
    if not found:
        return folder
    root = found.get(split)
    if root is None:
        names = ", ".join(f"{name}/" for name in _FOLDERS[split])
        problem = f"no such folder, so there is no {split} split"
        raise missing(folder / split, problem, f"add one of {names}")
    if not sub_folders(root):
        raise damaged(root, "no class folders in it", f"put the images into {root.name}/CLASS/")
    return root


def _class_places(
    folder: Path, class_names: Sequence[str] | None, problems: Problems
) -> dict[str, int]:
    """Return the label of each class folder.

    Over both splits, so that a class absent from one of them shifts no label. Names are compared by
    their plain form, since no folder is `T-shirt/top`.
    """
    splits = [*_split_folders(folder).values()] or [folder]
    found = sorted({path.name for root in splits for path in sub_folders(root)})
    if class_names is None:
        return {name: label for label, name in enumerate(found)}
    here, there = comparable(found, class_names)
    for name, form in zip(found, here, strict=True):
        if form not in there:
            problem = f"class folder {name!r} is not in class_names"
            problems.add(folder, problem, "list it or move it away")
    for name, form in zip(class_names, there, strict=True):
        if form not in here:
            problem = f"no class folder {name!r}, which class_names lists"
            problems.add(folder, problem, "correct the name")
    return {
        name: there.index(form) for name, form in zip(found, here, strict=True) if form in there
    }


def _image_files(class_folder: Path) -> list[Path]:
    return sorted(
        path
        for path in class_folder.iterdir()
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
    )


def unread_images(paths: Iterable[Path]) -> list[Path]:
    """Return the files that are images of a kind that is not read."""
    return [path for path in paths if path.suffix.lower() in UNREAD_SUFFIXES]


def warn_of_unread(folder: Path, paths: Sequence[Path]) -> None:
    """Warn where images are left out, because they are of a kind that is not read."""
    if paths:
        kinds = ", ".join(sorted({path.suffix.lower() for path in paths}))
        warnings.warn(
            f"{folder}: {counted(len(paths), 'image')} of a kind that is not read ({kinds}) are "
            "left out; convert them to .png or .jpg",
            stacklevel=2,
        )


def _without_images(class_folder: Path) -> tuple[str, str]:
    """Return the contents of a class folder without an image, and the remedy."""
    problem = "the class folder holds no image"
    inner = sub_folders(class_folder)
    if inner:
        names = ", ".join(path.name for path in inner[:3]) + (", ..." if len(inner) > 3 else "")
        remedy = (
            f"where these are the classes, give {class_folder.name} itself as the data set; where "
            f"they are groups of its images, give {FOLDER!r} as groups"
        )
        return f"{problem}, but the folders {names}", remedy
    unread = unread_images(class_folder.iterdir())
    if unread:
        return f"{problem} that is read, but {unread[0].name}", "convert the images to .png or .jpg"
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
