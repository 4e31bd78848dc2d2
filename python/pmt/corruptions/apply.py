"""Applying a corruption to images or to a data set, reproducibly."""

import functools
import os
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt

from pmt._util.arrays import Int64Array, Uint8Array
from pmt._util.checks import (
    SPLITS,
    SplitName,
    checked_array,
    checked_range,
    checked_word,
    refuse_mask,
)
from pmt.corruptions.catalog import CATALOG, CONSTANTS, Constants, Images, names
from pmt.corruptions.weather import find_overlays, map_size, read_overlays
from pmt.datasets.corrupted_arrays import checked_severity
from pmt.datasets.dataset import DataLike, Dataset

# Bounds the memory (2 MB an intermediate array, which fits a cache), never the result: each image
# has its own generator.
VALUES_A_CHUNK = 1 << 18


@overload
def corrupt(
    images: DataLike,
    name: str,
    severity: int,
    *,
    seed: int = 0,
    indices: npt.ArrayLike | None = None,
    constants: Constants = "cifar10",
    overlays: str | os.PathLike[str] | None = None,
) -> Dataset: ...


@overload
def corrupt(
    images: Images,
    name: str,
    severity: int,
    *,
    seed: int = 0,
    indices: npt.ArrayLike | None = None,
    constants: Constants = "cifar10",
    overlays: str | os.PathLike[str] | None = None,
) -> Images: ...


def corrupt(
    images: DataLike | Images,
    name: str,
    severity: int,
    *,
    seed: int = 0,
    indices: npt.ArrayLike | None = None,
    constants: Constants = "cifar10",
    overlays: str | os.PathLike[str] | None = None,
) -> Dataset | Images:
    """Corrupt images as CIFAR-10-C or ImageNet-C does.

    A corrupted image is a function of the image, its index in the data set, `name`, `severity`,
    `constants` and `seed`, and of nothing else, except ``frost``, which has its `overlays` too:
    each image has its own generator (PCG64, seeded with `seed` and the key (CRC-32 of the name,
    severity, index)). So a subset, given with its `indices`, gets the same pixels as within the
    whole data set.

    Parameters
    ----------
    images : Dataset, tuple of two arrays or ndarray of uint8
        A data set, a tuple of arrays ``(x, y)``, or uint8 images of shape (N, H, W, C) with
        C = 1 or 3, any H and W.
    name : str
        One of :func:`pmt.corruptions.names`.
    severity : int
        1 (weak) to 5 (strong).
    seed : int
        Integer, 0 or more.
    indices : array_like of int, optional
        Index of every image in its whole data set, integers, shape (N,); by default 0 to N - 1.
    constants : {"cifar10", "imagenet"}
        Set of constants: ``"cifar10"``, made for images of 32x32, or ``"imagenet"``, stronger and
        made for 224x224. Lengths in them are pixels; they do not grow with the image.
    overlays : str or pathlib.Path, optional
        Folder of the photographs that ``frost`` needs; by default ``$PMT_DATA/frost``.

    Returns
    -------
    Dataset or numpy.ndarray
        The same kind as `images`, a data set for a tuple. A data set keeps its labels and is named
        ``"<its name>-<name>-<severity>"``. Pixels are clipped to 0..255 and truncated to uint8,
        not rounded, as the published script does.

    Raises
    ------
    TypeError
        If `images` is not uint8, or `severity`, `seed` or `indices` are not integers.
    ValueError
        If `name`, `severity` or `constants` is unknown, `seed` is negative, or `images` or
        `indices` have a wrong shape.
    FileNotFoundError
        If the overlays of ``frost`` are not there; the message says where to get them.
    ModuleNotFoundError
        If SciPy (for ``elastic_transform`` and ``spatter``) or Pillow (for ``frost``,
        ``jpeg_compression`` and ``pixelate``) is missing: both are in the extra "data".

    Notes
    -----
    Constants and formulas: Hendrycks and Dietterich, ICLR 2019, scripts make_cifar_c.py and
    make_imagenet_c.py. The random numbers are our own, so single pixels differ from the published
    arrays. The noise types use numpy's ``Generator`` distributions, whose streams numpy may
    change in a major version; JPEG compression is that of the installed Pillow.
    """
    if isinstance(images, Dataset | tuple):
        images = Dataset.of(images, "images")
        pixels = corrupt(
            images.images,
            name,
            severity,
            seed=seed,
            indices=indices,
            constants=constants,
            overlays=overlays,
        )
        return Dataset(
            images=pixels,
            labels=images.labels,
            class_names=images.class_names,
            name=f"{images.name}-{name}-{severity}",
        )
    corruption = CATALOG[checked_word("name", name, names())]
    level = checked_severity(severity)
    seed = checked_range("seed", seed, 0)
    checked_word("constants", constants, CONSTANTS)
    constant = corruption.constants[constants][level - 1]
    _check_images(images)
    positions = _checked_indices(indices, len(images))
    function = corruption.function
    if corruption.needs_overlays:
        function = functools.partial(function, overlays=read_overlays(overlays))
    streams = _Streams(name, level, seed) if corruption.is_random else None
    return _corrupt_chunks(images, function, constant, streams, positions)


def unavailable(names: Iterable[str]) -> dict[str, str]:
    """Return those of the corruptions whose photographs are not there, each with the remedy."""
    found = {}
    for name in names:
        if CATALOG[name].needs_overlays:
            try:
                find_overlays()
            except FileNotFoundError as error:
                found[name] = str(error)
    return found


def split_seed(seed: int, split: SplitName) -> int:
    """Return the seed to corrupt a split with: `seed` for "train", `seed` + 1 for "test".

    Raises
    ------
    ValueError
        If `split` is unknown or `seed` is negative.
    """
    is_test = checked_word("split", split, SPLITS) == "test"
    return checked_range("seed", seed, 0) + is_test


@dataclass(frozen=True)
class _Streams:
    """The random numbers of a corruption: one generator for each index of a data set."""

    name: str
    severity: int
    seed: int

    def generators(self, positions: Int64Array) -> list[np.random.Generator]:
        # The CRC, unlike a place in the catalog, stays when corruptions are added.
        key = zlib.crc32(self.name.encode("ascii"))
        found = []
        for index in positions.tolist():
            sequence = np.random.SeedSequence(self.seed, spawn_key=(key, self.severity, index))
            found.append(np.random.Generator(np.random.PCG64(sequence)))
        return found


def _corrupt_chunks(
    images: Images,
    function: Callable[..., Uint8Array | npt.NDArray[np.floating]],
    constant: object,
    streams: _Streams | None,
    positions: Int64Array,
) -> Images:
    corrupted = np.empty(images.shape, np.uint8)
    height, width, channels = images.shape[1:]
    largest = max(height * width * channels, map_size(height, width) ** 2)
    chunk = max(1, VALUES_A_CHUNK // largest)
    for start in range(0, len(images), chunk):
        part = slice(start, start + chunk)
        generators = streams.generators(positions[part]) if streams else []
        result = function(images[part], constant, generators)
        if result.dtype != np.uint8:
            result = np.clip(result, 0.0, 1.0) * 255
        corrupted[part] = result.astype(np.uint8)
    return corrupted


def _check_images(images: object) -> None:
    refuse_mask("images", images)
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8:
        found = images.dtype if isinstance(images, np.ndarray) else type(images).__name__
        remedy = "pmt.datasets.load(path) returns a data set"
        if isinstance(images, np.ndarray):
            remedy = (
                "scale float pixels to 0..255 and convert with .astype(numpy.uint8); other inputs "
                "have no corruptions"
            )
        raise TypeError(f"images is {found}: must be a Dataset or a uint8 array; {remedy}")
    if images.ndim != 4 or images.shape[3] not in (1, 3) or 0 in images.shape[1:]:
        raise ValueError(
            f"images has shape {images.shape}: must be (N, H, W, C) with C = 1 or 3; "
            "put the channels last, and add the batch axis to a single image with image[None]"
        )


def _checked_indices(indices: npt.ArrayLike | None, count: int) -> Int64Array:
    if indices is None:
        return np.arange(count, dtype=np.int64)
    positions = checked_array("indices", indices)
    if positions.dtype.kind not in "iu":
        raise TypeError(f"indices is {positions.dtype}: must be integers")
    if positions.shape != (count,):
        raise ValueError(
            f"indices has shape {positions.shape}: must be ({count},), one index an image"
        )
    if count and positions.min() < 0:
        raise ValueError(f"indices holds {positions.min()}: an index is 0 or more")
    return positions.astype(np.int64)
