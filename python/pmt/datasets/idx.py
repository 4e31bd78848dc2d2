"""The idx files of MNIST and Fashion-MNIST, plain or gzip-compressed.

Source of the format: http://yann.lecun.com/exdb/mnist, "File formats for this dataset".
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pmt.datasets.class_names import names_for
from pmt.datasets.dataset import Dataset
from pmt.datasets.files import damaged, largest_unpacked, missing, read_bytes

PREFIXES = {"train": "train", "test": "t10k"}
UNSIGNED_BYTE = 0x08
REMEDY = "download the data set again"
CHUNK = 1 << 20


def has_idx(folder: Path) -> bool:
    """Whether the folder holds an idx file of images for any split."""
    return any(_find(folder, split, "images", 3) is not None for split in PREFIXES)


def read_idx(folder: Path, split: str, class_names: Sequence[str] | None = None) -> Dataset:
    """Read ``train-images-idx3-ubyte`` and its labels, or the ``t10k-`` pair, ``.gz`` or not.

    Without `class_names` the names are "0", "1", ..., at least ten.
    """
    image_path, images = _read_file(folder, split, "images", 3)
    label_path, labels = _read_file(folder, split, "labels", 1)
    if len(images) != len(labels):
        problem = f"{len(labels)} labels for {len(images)} images in {image_path.name}"
        raise damaged(label_path, problem, f"{REMEDY}, both files")
    return Dataset(
        images=images[..., None],
        labels=labels.astype(np.int64),
        class_names=names_for(label_path, labels, class_names, at_least=10),
        name=folder.name or "idx",
    )


def _find(folder: Path, split: str, kind: str, dimensions: int) -> Path | None:
    for dot in ("-", "."):
        for suffix in ("", ".gz"):
            path = folder / f"{PREFIXES[split]}-{kind}{dot}idx{dimensions}-ubyte{suffix}"
            if path.is_file():
                return path
    return None


def _read_file(
    folder: Path, split: str, kind: str, dimensions: int
) -> tuple[Path, npt.NDArray[np.uint8]]:
    path = _find(folder, split, kind, dimensions)
    if path is None:
        expected = folder / f"{PREFIXES[split]}-{kind}-idx{dimensions}-ubyte"
        raise missing(expected, f"no such file, nor with .gz, for the {split} split", REMEDY)
    data = _decompressed(path) if path.suffix == ".gz" else read_bytes(path)
    return path, _parsed(path, data, dimensions)


def _decompressed(path: Path) -> bytes:
    data = bytearray()
    try:
        largest = largest_unpacked(path.stat().st_size)
        with gzip.open(path) as stream:
            while chunk := stream.read(CHUNK):
                data += chunk
                if len(data) > largest:
                    raise damaged(path, f"unpacks to more than {largest} bytes", REMEDY)
        return bytes(data)
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(path, f"not a whole gzip file ({error})", REMEDY) from None


def _parsed(path: Path, data: bytes, dimensions: int) -> npt.NDArray[np.uint8]:
    start = 4 + 4 * dimensions
    if len(data) < start or data[:4] != bytes((0, 0, UNSIGNED_BYTE, dimensions)):
        raise damaged(path, f"not an idx file of bytes with {dimensions} dimensions", REMEDY)
    shape = tuple(int(extent) for extent in np.frombuffer(data, ">u4", dimensions, 4))
    size = 1
    for extent in shape:
        size *= extent
    if size == 0:
        raise damaged(path, f"holds nothing (shape {shape})", REMEDY)
    if len(data) - start != size:
        raise damaged(
            path,
            f"has {len(data) - start} bytes of data, its header says {size} (shape {shape})",
            REMEDY,
        )
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)
