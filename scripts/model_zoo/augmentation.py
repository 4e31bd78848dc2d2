"""Augmentation of training images: shift, crop, mirror, and nothing that a corruption does.

No noise, blur, contrast or brightness is ever shown: these are the shifts that a user adapts the
model to, so they must be new to it. Crops are the exception that proves how much this matters:
enlarged, they are as smooth as a blurred image, and a network that saw them stands blur.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

Augmentation = Literal["shift", "crop"]

LARGEST_SHIFT = 4  # pixels
SMALLEST_CROP = 0.25  # of the area
WIDEST_CROP = 4 / 3  # width by height; the narrowest is the inverse


def augmented(
    images: npt.NDArray[np.uint8], kind: Augmentation, side: int, generator: np.random.Generator
) -> torch.Tensor:
    """Augment ``(N, 32, 32, 3)``; return pixels 0..255, ``(N, 3, side, side)``."""
    if kind == "shift":
        return enlarged(torch.from_numpy(_shifted_and_mirrored(images, generator)), side)
    return _cropped_and_mirrored(torch.from_numpy(images.copy()), side, generator)


def enlarged(images: torch.Tensor, side: int) -> torch.Tensor:
    """Upscale uint8 ``(N, H, W, C)`` as :func:`pmt.datasets.load` does: bilinear, whole pixels."""
    pixels = images.permute(0, 3, 1, 2).float()
    if pixels.shape[-1] != side:
        pixels = nn.functional.interpolate(pixels, (side, side), mode="bilinear").round()
    return pixels.contiguous(memory_format=torch.channels_last)


def _shifted_and_mirrored(
    images: npt.NDArray[np.uint8], generator: np.random.Generator
) -> npt.NDArray[np.uint8]:
    """Shift by up to 4 pixels (mirrored edges) and mirror."""
    count, side, margin = len(images), images.shape[1], LARGEST_SHIFT
    padded = np.pad(images, ((0, 0), (margin, margin), (margin, margin), (0, 0)), mode="reflect")
    rows, columns = generator.integers(0, 2 * margin + 1, size=(2, count))
    row_indices = rows[:, None] + np.arange(side)
    column_indices = columns[:, None] + np.arange(side)
    mirrored = generator.random(count) < 0.5
    column_indices[mirrored] = column_indices[mirrored, ::-1]
    every = np.arange(count)[:, None, None]
    return padded[every, row_indices[:, :, None], column_indices[:, None, :]]


def _cropped_and_mirrored(
    images: torch.Tensor, side: int, generator: np.random.Generator
) -> torch.Tensor:
    """Enlarge a random part of each image, as torchvision's ``RandomResizedCrop`` does."""
    count = len(images)
    area = generator.uniform(SMALLEST_CROP, 1.0, count)
    ratio = np.exp(generator.uniform(-np.log(WIDEST_CROP), np.log(WIDEST_CROP), count))
    width, height = np.minimum(np.sqrt(area * ratio), 1.0), np.minimum(np.sqrt(area / ratio), 1.0)
    transform = np.zeros((count, 2, 3), np.float32)
    transform[:, 0, 0] = width * np.where(generator.random(count) < 0.5, -1.0, 1.0)
    transform[:, 1, 1] = height
    transform[:, 0, 2] = generator.uniform(-1.0, 1.0, count) * (1.0 - width)
    transform[:, 1, 2] = generator.uniform(-1.0, 1.0, count) * (1.0 - height)
    grid = nn.functional.affine_grid(
        torch.from_numpy(transform), [count, 3, side, side], align_corners=False
    )
    pixels = nn.functional.grid_sample(
        images.permute(0, 3, 1, 2).float(), grid, padding_mode="border", align_corners=False
    )
    return pixels.contiguous(memory_format=torch.channels_last)
