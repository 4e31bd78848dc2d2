"""The images of a run, and the checksums that stand for them in its hash."""

import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pmt import Model
from pmt.datasets import Dataset
from pmt.protocol import DataSource, ImagePool, Split, data_path, split
from pmt_lab.sweep.grid import CLEAN

Pools = tuple[ImagePool, ImagePool]


def pools(data: Mapping[str, Any], corruption: str, severity: int, model: Model) -> Pools:
    """Return the train and the test images, which are corrupted when they are taken.

    They keep their own size: resized, a whole test split of 128x128 pixels takes half a gigabyte.
    Errors are those of :meth:`pmt.protocol.DataSource.pool`.
    """
    is_clean = corruption == CLEAN
    source = DataSource(
        data=data_path(data["path"]),
        corruption="" if is_clean else corruption,
        severity=0 if is_clean else severity,
        corruption_seed=data["corruption_seed"],
        labels="coarse" if data["coarse_labels"] else "fine",
        constants=data["constants"],
    )
    train, test = source.pool("train", model), source.pool("test", model)
    return replace(train, size=None), replace(test, size=None)


def checksum(data: Dataset) -> int:
    """Return the CRC-32 of the labels (int64, little-endian) followed by the images."""
    labels = zlib.crc32(np.ascontiguousarray(data.labels, "<i8").data)
    return zlib.crc32(np.ascontiguousarray(data.images).data, labels)


def checksums(pair: Pools, protocol: Mapping[str, Any]) -> dict[str, int]:
    """Return the CRC-32 of the images that a run draws from, by split.

    Corrupted images that are not stored follow from the clean ones, the corruption and its seed.
    """
    train, test = pair
    drawn = {"test": test} if protocol["name"] == "paper" else {"train": train, "test": test}
    return {
        f"{name}_crc32": checksum(pool.images if pool.stored is None else pool.stored)
        for name, pool in drawn.items()
    }


def load_split(pair: Pools, protocol: Mapping[str, Any]) -> Split:
    """Choose a run's images; errors as in :func:`pmt.protocol.split`."""
    options = {key: value for key, value in protocol.items() if key != "name"}
    train, test = pair
    return split(protocol["name"], None if protocol["name"] == "paper" else train, test, **options)


def at_size(data: Dataset, model: Model) -> Dataset:
    """Return the images at the size that the model takes; inputs that are not pixels stay."""
    return data.resize(*model.image_shape[:2]) if data.has_pixels else data
