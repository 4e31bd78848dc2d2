"""The layouts of image files on disk: which one a folder has, and its list of images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from pmt.datasets.cub200 import has_cub200, list_cub200
from pmt.datasets.flowers102 import has_flowers102, list_flowers102
from pmt.datasets.food101 import has_food101, list_food101
from pmt.datasets.image_files import ImageFiles, renamed
from pmt.datasets.image_folder import list_image_folder, sub_folders
from pmt.datasets.oxford_pets import has_oxford_pets, list_oxford_pets
from pmt.datasets.stanford_cars import has_stanford_cars, list_stanford_cars
from pmt.datasets.visual_wake_words import has_visual_wake_words, list_visual_wake_words


class _Layout(NamedTuple):
    has: Callable[[Path], bool]
    list_files: Callable[[Path, str], ImageFiles]


OFFICIAL = (
    _Layout(has_stanford_cars, list_stanford_cars),
    _Layout(has_cub200, list_cub200),
    _Layout(has_flowers102, list_flowers102),
    _Layout(has_food101, list_food101),
    _Layout(has_oxford_pets, list_oxford_pets),
    _Layout(has_visual_wake_words, list_visual_wake_words),
)


def find_image_files(
    folder: Path, split: str, class_names: Sequence[str] | None = None
) -> ImageFiles | None:
    """List the images of one split of a folder; None if it holds no known layout of images."""
    for layout in OFFICIAL:
        if layout.has(folder):
            return renamed(layout.list_files(folder, split), class_names)
    if sub_folders(folder):
        return list_image_folder(folder, split, class_names)
    return None
