"""A folder of images, one sub-folder a class, with or without `train` and `test` above them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import numpy.typing as npt

from pmt.datasets.damage import damaged, missing
from pmt.datasets.dataset import Dataset

SPLITS = ("train", "test")
SUFFIXES = frozenset((".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm"))
GREY_MODES = ("1", "L", "LA")
WIDE_MODES = ("I", "F")


def sub_folders(folder: Path) -> list[Path]:
    """List the visible sub-folders, in the order of their names."""
    return sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))


def read_image_folder(
    folder: Path,
    split: str,
    class_names: Sequence[str] | None = None,
    size: tuple[int, int] | None = None,
) -> Dataset:
    """Read the images of one split; the names of the sub-folders are the classes.

    Parameters
    ----------
    folder
        Holds ``train/CLASS/`` and ``test/CLASS/``, or ``CLASS/`` directly: then all images are
        given for either split.
    split
        "train" or "test".
    class_names
        The sub-folders in the order of their labels; by default sorted by name, over both
        splits, so that a class has one label in both.
    size
        Height and width to resize to (bilinear, smoothed); by default all must be of one size.

    Returns
    -------
    Dataset
        One channel if every image is grey, else RGB. Transparency is dropped.

    Raises
    ------
    ModuleNotFoundError
        Pillow is not installed.
    FileNotFoundError
        The split's folder is missing.
    ValueError
        An empty or unlisted class folder, an image that cannot be decoded or has more than 8 bits
        a channel, or images of different sizes without `size`.
    """
    root = _split_folder(folder, split)
    names = _class_names(folder, class_names)
    files: list[tuple[Path, int]] = []
    for class_folder in sub_folders(root):
        label = names.index(class_folder.name)
        files += [(path, label) for path in _image_files(class_folder)]
    images = _stacked([path for path, _ in files], size)
    labels = np.array([label for _, label in files], np.int64)
    return Dataset(images=images, labels=labels, class_names=names, name=folder.name or "images")


def resized(images: npt.NDArray[np.uint8], size: tuple[int, int]) -> npt.NDArray[np.uint8]:
    """Resize images in memory as :func:`read_image_folder` does.

    Parameters
    ----------
    images
        uint8, shape (N, H, W, C), C = 1 or 3.
    size
        New height and width.

    Returns
    -------
    numpy.ndarray
        uint8, shape (N, *size, C), read-only.
    """
    module = pillow()
    result = np.empty((len(images), *size, images.shape[3]), np.uint8)
    for target, image in zip(result, images, strict=True):
        picture = module.fromarray(image[..., 0] if images.shape[3] == 1 else image)
        target[...] = _pixels(picture.resize(size[::-1], module.Resampling.BILINEAR))
    result.flags.writeable = False
    return result


def pillow() -> ModuleType:
    """Import Pillow's Image module, or say how to install it."""
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            'decoding and resizing images needs Pillow: pip install "poor-mans-training[data]"'
        ) from None
    return Image


def _split_folder(folder: Path, split: str) -> Path:
    if not any((folder / name).is_dir() for name in SPLITS):
        return folder
    root = folder / split
    if not root.is_dir():
        raise missing(root, f"no such folder, so there is no {split} split", "add it")
    if not sub_folders(root):
        raise damaged(root, "no class folders in it", f"put the images into {split}/CLASS/")
    return root


def _class_names(folder: Path, class_names: Sequence[str] | None) -> tuple[str, ...]:
    """Names over both splits, so that a class absent from one of them shifts no label."""
    splits = [folder / name for name in SPLITS if (folder / name).is_dir()] or [folder]
    found = sorted({path.name for root in splits for path in sub_folders(root)})
    if class_names is None:
        return tuple(found)
    for name in found:
        if name not in class_names:
            raise damaged(
                folder, f"class folder {name!r} is not in class_names", "list it or move it away"
            )
    for name in class_names:
        if name not in found:
            raise damaged(
                folder, f"no class folder {name!r}, which class_names lists", "correct the name"
            )
    return tuple(class_names)


def _image_files(class_folder: Path) -> list[Path]:
    files = sorted(
        path
        for path in class_folder.iterdir()
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
    )
    if not files:
        raise damaged(
            class_folder, "the class folder holds no image", "add images or remove the folder"
        )
    return files


def _stacked(paths: list[Path], size: tuple[int, int] | None) -> npt.NDArray[np.uint8]:
    """Decode all files into one read-only array, (N, H, W, 1) if all are grey, else RGB."""
    pictures = [_decoded(path, size) for path in paths]
    first = pictures[0].shape[:2]
    for path, picture in zip(paths, pictures, strict=True):
        if picture.shape[:2] != first:
            height, width = picture.shape[:2]
            raise damaged(
                path,
                f"is {height}x{width} (height x width) but {paths[0].name} is "
                f"{first[0]}x{first[1]}",
                "give one size for all, as in size=(32, 32)",
            )
    channels = max(picture.shape[2] for picture in pictures)
    images = np.empty((len(pictures), *first, channels), np.uint8)
    for target, picture in zip(images, pictures, strict=True):
        target[...] = picture
    images.flags.writeable = False
    return images


def _decoded(path: Path, size: tuple[int, int] | None) -> npt.NDArray[np.uint8]:
    module = pillow()
    try:
        with module.open(path) as picture:
            if picture.mode.split(";")[0] in WIDE_MODES:
                raise damaged(path, "has more than 8 bits a channel", "convert it to 8 bits")
            converted = picture.convert("L" if picture.mode in GREY_MODES else "RGB")
    except (OSError, SyntaxError, EOFError, MemoryError, module.DecompressionBombError) as error:
        raise damaged(path, f"cannot be decoded ({error})", "replace or remove this file") from None
    if size is not None and converted.size != size[::-1]:
        converted = converted.resize(size[::-1], module.Resampling.BILINEAR)
    return _pixels(converted)


def _pixels(picture: object) -> npt.NDArray[np.uint8]:
    pixels = np.asarray(picture, np.uint8)
    return pixels[..., None] if pixels.ndim == 2 else pixels
