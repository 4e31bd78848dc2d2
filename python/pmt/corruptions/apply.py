"""Applying a corruption to images or to a data set, reproducibly."""

from __future__ import annotations

import zlib
from typing import overload

import numpy as np
import numpy.typing as npt

from pmt.corruptions.catalogue import CATALOGUE, SEVERITIES, Corruption, names
from pmt.corruptions.fog import map_size
from pmt.corruptions.noise import Images
from pmt.datasets.checks import checked_integer, checked_seed
from pmt.datasets.dataset import Dataset

# Bounds the memory (about 32 MB an intermediate array), never the result: each image has its own
# generator.
VALUES_A_CHUNK = 1 << 22


@overload
def corrupt(
    images: Dataset,
    name: str,
    severity: int,
    *,
    seed: int = 0,
    indices: npt.ArrayLike | None = None,
) -> Dataset: ...


@overload
def corrupt(
    images: Images,
    name: str,
    severity: int,
    *,
    seed: int = 0,
    indices: npt.ArrayLike | None = None,
) -> Images: ...


def corrupt(
    images: Dataset | Images,
    name: str,
    severity: int,
    *,
    seed: int = 0,
    indices: npt.ArrayLike | None = None,
) -> Dataset | Images:
    """Corrupt images as CIFAR-10-C does.

    A corrupted image is a function of the image, its index in the data set, `name`, `severity`
    and `seed`, and of nothing else: each image has its own generator (PCG64, seeded with `seed`
    and the key (CRC-32 of the name, severity, index)). So a subset, given with its `indices`,
    gets the same pixels as within the whole data set.

    Parameters
    ----------
    images
        A data set, or uint8 images of shape (N, H, W, C) with C = 1 or 3, any H and W.
    name
        One of :func:`pmt.corruptions.names`.
    severity
        1 (weak) to 5 (strong).
    seed
        Integer, 0 or more.
    indices
        Index of every image in its whole data set, integers, shape (N,); by default 0 to N - 1.

    Returns
    -------
    Dataset or numpy.ndarray
        What `images` was. A data set keeps its labels and is named
        ``"<its name>-<name>-<severity>"``. Pixels are clipped to 0..255 and truncated to uint8,
        not rounded, as the published script does.

    Raises
    ------
    TypeError
        `images` is not uint8, or `severity`, `seed` or `indices` are not integers.
    ValueError
        Unknown `name` or `severity`, negative `seed`, wrong shape of `images` or `indices`.

    Notes
    -----
    Constants and formulas: Hendrycks and Dietterich, ICLR 2019, script make_cifar_c.py. The
    random numbers are our own, so single pixels differ from the published CIFAR-10-C arrays. The
    noise types use numpy's ``Generator`` distributions, whose streams numpy may change in a
    major version.
    """
    if isinstance(images, Dataset):
        pixels = corrupt(images.images, name, severity, seed=seed, indices=indices)
        return Dataset(
            images=pixels,
            labels=images.labels,
            class_names=images.class_names,
            name=f"{images.name}-{name}-{severity}",
        )
    corruption = _checked_corruption(name)
    level = checked_integer("severity", severity)
    if level not in SEVERITIES:
        raise ValueError(f"severity = {severity}: choose one of 1, 2, 3, 4, 5")
    seed = checked_seed(seed)
    _check_images(images)
    positions = _checked_indices(indices, len(images))
    return _corrupt_chunks(images, corruption, name, level, seed, positions)


def _corrupt_chunks(
    images: Images,
    corruption: Corruption,
    name: str,
    severity: int,
    seed: int,
    positions: npt.NDArray[np.int64],
) -> Images:
    constant = corruption.constants[severity - 1]
    # The CRC, unlike a place in the catalogue, stays when corruptions are added.
    key = zlib.crc32(name.encode("ascii"))
    corrupted = np.empty(images.shape, np.uint8)
    height, width, channels = images.shape[1:]
    largest = max(height * width * channels, map_size(height, width) ** 2)
    chunk = max(1, VALUES_A_CHUNK // largest)
    for start in range(0, len(images), chunk):
        part = slice(start, start + chunk)
        generators = []
        if corruption.is_random:
            for index in positions[part]:
                stream = np.random.SeedSequence(seed, spawn_key=(key, severity, int(index)))
                generators.append(np.random.Generator(np.random.PCG64(stream)))
        result = corruption.function(images[part], constant, generators)
        corrupted[part] = (np.clip(result, 0.0, 1.0) * 255).astype(np.uint8)
    return corrupted


def _checked_corruption(name: str) -> Corruption:
    if name not in CATALOGUE:
        raise ValueError(f"name = {name!r}: no such corruption; choose one of {', '.join(names())}")
    return CATALOGUE[name]


def _check_images(images: object) -> None:
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8:
        found = images.dtype if isinstance(images, np.ndarray) else type(images).__name__
        raise TypeError(
            f"images is {found}: must be a Dataset or a uint8 array; scale float pixels to 0..255 "
            "and convert with .astype(numpy.uint8)"
        )
    if images.ndim != 4 or images.shape[3] not in (1, 3) or 0 in images.shape[1:]:
        raise ValueError(
            f"images has shape {images.shape}: must be (N, H, W, C) with C = 1 or 3; "
            "put the channels last, and add the batch axis to a single image with image[None]"
        )


def _checked_indices(indices: npt.ArrayLike | None, count: int) -> npt.NDArray[np.int64]:
    if indices is None:
        return np.arange(count, dtype=np.int64)
    positions = np.asarray(indices)
    if positions.dtype.kind not in "iu":
        raise TypeError(f"indices is {positions.dtype}: must be integers")
    if positions.shape != (count,):
        raise ValueError(
            f"indices has shape {positions.shape}: must be ({count},), one index an image"
        )
    if count and positions.min() < 0:
        raise ValueError(f"indices holds {positions.min()}: an index is 0 or more")
    return positions.astype(np.int64)
