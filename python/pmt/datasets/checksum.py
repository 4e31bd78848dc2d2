"""Numbers that tell two data sets apart."""

from __future__ import annotations

import zlib

import numpy as np

from pmt.datasets.dataset import Dataset


def checksum(data: Dataset) -> int:
    """Return the CRC-32 of the labels (int64, little-endian) followed by the images."""
    return _images_after(data, _labels(data))


def checksums(data: Dataset) -> tuple[int, int]:
    """Return the CRC-32 of the images, and that of the labels (int64, little-endian)."""
    return _images_after(data, 0), _labels(data)


def _labels(data: Dataset) -> int:
    return zlib.crc32(data.labels.astype("<i8").tobytes())


def _images_after(data: Dataset, crc: int) -> int:
    return zlib.crc32(np.ascontiguousarray(data.images).data, crc)
