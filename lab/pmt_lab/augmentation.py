"""Random views of training images, as networks for ImageNet are trained with.

Crops of random area and aspect ratio (Szegedy et al. 2015, arXiv:1409.4842, section 6), mirrored
half of the time, with random brightness, contrast and saturation (Howard 2013, arXiv:1312.5402).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PIL import Image, ImageEnhance

from pmt.datasets import Dataset

__all__ = ["center_crop", "random_views"]

_AREA = (0.08, 1.0)  # of the image
_LOG_ASPECT = (np.log(3 / 4), np.log(4 / 3))
_TRIES = 10
_JITTER = 0.4  # largest change of a factor
_ENHANCERS = (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color)


def random_views(data: Dataset, size: int, times: int, seed: int) -> Dataset:
    """Return random views of images, all of them once, then all of them again.

    Parameters
    ----------
    data : Dataset
        Color images, uint8 of shape (N, H, W, 3).
    size : int
        Height and width of a view in pixels.
    times : int
        Views of each image.
    seed : int
        Seed of the views.

    Returns
    -------
    Dataset
        uint8 images of shape (times * N, size, size, 3).
    """
    random = np.random.default_rng(seed)
    views = np.empty((times * len(data), size, size, 3), np.uint8)
    for i, view in enumerate(views):
        image = Image.fromarray(data.images[i % len(data)])
        view[:] = np.asarray(_view(image, size, random))
    return replace(data, images=views, labels=np.tile(data.labels, times))


def center_crop(data: Dataset, size: int, enlarged: int) -> Dataset:
    """Return images enlarged to a height and width, of which the center is kept.

    Parameters
    ----------
    data : Dataset
        Color images, uint8 of shape (N, H, W, 3).
    size, enlarged : int
        Height and width of the center, and of what it is cut from, in pixels.

    Returns
    -------
    Dataset
        uint8 images of shape (N, size, size, 3).
    """
    first = round((enlarged - size) / 2)
    images = np.empty((len(data), size, size, 3), np.uint8)
    for image, center in zip(data.images, images, strict=True):
        large = Image.fromarray(image).resize((enlarged, enlarged), Image.Resampling.BICUBIC)
        center[:] = np.asarray(large)[first : first + size, first : first + size]
    return replace(data, images=images)


def _view(image: Image.Image, size: int, random: np.random.Generator) -> Image.Image:
    view = image.resize((size, size), Image.Resampling.BICUBIC, box=_box(image, random))
    if random.random() < 0.5:
        view = view.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    for i in random.permutation(len(_ENHANCERS)):
        view = _ENHANCERS[i](view).enhance(random.uniform(1 - _JITTER, 1 + _JITTER))
    return view


def _box(image: Image.Image, random: np.random.Generator) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of a random crop; the whole image where none fits."""
    for _ in range(_TRIES):
        area = image.width * image.height * random.uniform(*_AREA)
        aspect = np.exp(random.uniform(*_LOG_ASPECT))
        width, height = round(np.sqrt(area * aspect)), round(np.sqrt(area / aspect))
        if 0 < width <= image.width and 0 < height <= image.height:
            left = int(random.integers(image.width - width + 1))
            top = int(random.integers(image.height - height + 1))
            return left, top, left + width, top + height
    return 0, 0, image.width, image.height
