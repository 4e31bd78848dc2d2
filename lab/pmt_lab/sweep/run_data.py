"""The images of a run, and the checksums that stand for them in its hash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pmt.datasets import Dataset
from pmt.datasets.dataset import checksum
from pmt.datasets.layouts import fitted
from pmt.datasets.picture import Fit
from pmt.model import Model
from pmt.protocol import ImagePool, Split, split
from pmt.protocol.data_source import DataSource, data_path
from pmt_lab.sweep.grid_file import CLEAN

__all__ = ["at_size", "checksums", "drawn", "load_split", "pools"]


def pools(
    data: Mapping[str, Any], corruption: str, severity: int, model: Model
) -> tuple[ImagePool, ImagePool]:
    """Return the train and the test images, which are corrupted when they are taken.

    They keep their own size: resized, a whole test split of 128x128 pixels takes half a gigabyte.
    Errors are those of :meth:`DataSource.pool`.
    """
    source = _source(data, corruption, severity)
    train, test = source.pool("train", model), source.pool("test", model)
    return replace(train, size=None), replace(test, size=None)


def checksums(pair: tuple[ImagePool, ImagePool], protocol: Mapping[str, Any]) -> dict[str, int]:
    """Return the CRC-32 of the images that a run draws from, by split.

    Corrupted images that are not stored follow from the clean ones, the corruption and its seed.
    """
    return {
        f"{name}_crc32": checksum(pool.images if pool.stored is None else pool.stored)
        for name, pool in drawn(pair, protocol).items()
    }


def drawn(pair: tuple[ImagePool, ImagePool], protocol: Mapping[str, Any]) -> dict[str, ImagePool]:
    """Return the images that a run draws from, by split."""
    train, test = pair
    return {"test": test} if protocol["name"] == "paper" else {"train": train, "test": test}


def load_split(pair: tuple[ImagePool, ImagePool], protocol: Mapping[str, Any]) -> Split:
    """Choose a run's images; errors as in :func:`pmt.protocol.split`."""
    options = {key: value for key, value in protocol.items() if key != "name"}
    train, test = pair
    return split(protocol["name"], None if protocol["name"] == "paper" else train, test, **options)


def at_size(data: Dataset, model: Model) -> Dataset:
    """Return the images at the size of the model's input."""
    return fitted(data, Fit(model.input_shape[:2]))


def _source(data: Mapping[str, Any], corruption: str, severity: int) -> DataSource:
    corrupted = corruption != CLEAN
    return DataSource(
        data=data_path(data["path"]),
        corruption=corruption if corrupted else "",
        severity=severity if corrupted else 0,
        corruption_seed=data["corruption_seed"],
        labels="coarse" if data["coarse_labels"] else "fine",
        constants=data["constants"],
    )
