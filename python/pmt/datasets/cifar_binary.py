"""CIFAR-10 in its official binary layout: records of one label byte and 3,072 pixel bytes.

Source of the format: https://www.cs.toronto.edu/~kriz/cifar.html, "Binary version".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pmt.datasets.class_names import CIFAR10_CLASSES, names_for
from pmt.datasets.damage import damaged, missing, read_bytes
from pmt.datasets.dataset import Dataset

PIXELS = 3 * 32 * 32
RECORD = 1 + PIXELS
REMEDY = "download cifar-10-binary.tar.gz again"


def read_cifar_binary(
    folder: Path, split: str, class_names: Sequence[str] | None = None
) -> Dataset:
    """Read ``data_batch_*.bin`` (train) or ``test_batch.bin`` (test).

    A file may hold fewer than the official 10,000 records.

    Parameters
    ----------
    folder
        Folder of the files; ``batches.meta.txt`` names the classes where it is present.
    split
        "train" or "test".
    class_names
        Other names, ten of them.

    Raises
    ------
    FileNotFoundError
        No file for this split, or a gap in the numbers of the training files.
    ValueError
        A file of the wrong size, a label above 9, or a damaged ``batches.meta.txt``.
    """
    batches = [_read_batch(path) for path in batch_files(folder, split, ".bin", REMEDY)]
    labels = np.concatenate([labels for labels, _ in batches]).astype(np.int64)
    images = planes_to_images(np.concatenate([planes for _, planes in batches]))
    names = class_names if class_names is not None else _class_names(folder)
    return Dataset(
        images=images,
        labels=labels,
        class_names=names_for(folder, labels, names),
        name="cifar10",
    )


def batch_files(folder: Path, split: str, suffix: str, remedy: str) -> list[Path]:
    """List the files of one split, the training files 1, 2, 3, ... without a gap."""
    if split == "test":
        path = folder / f"test_batch{suffix}"
        if not path.is_file():
            raise missing(path, "no such file, so there is no test split", remedy)
        return [path]
    pattern = re.compile(rf"data_batch_([1-9][0-9]*){re.escape(suffix)}")
    matches = (pattern.fullmatch(path.name) for path in folder.iterdir())
    numbers = sorted(int(match[1]) for match in matches if match)
    for expected in range(1, max(numbers, default=1) + 1):
        if expected not in numbers:
            path = folder / f"data_batch_{expected}{suffix}"
            raise missing(path, "no such file, so the train split is not whole", remedy)
    return [folder / f"data_batch_{number}{suffix}" for number in numbers]


def planes_to_images(planes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Turn rows of 1,024 red, 1,024 green and 1,024 blue bytes into frozen (N, 32, 32, 3)."""
    images = np.ascontiguousarray(planes.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    images.flags.writeable = False
    return images


def check_labels(path: Path, labels: npt.NDArray[np.integer], remedy: str) -> None:
    """Raise a ValueError that names the first label outside 0 to 9."""
    wrong = np.flatnonzero((labels < 0) | (labels > 9))
    if wrong.size:
        first = int(wrong[0])
        raise damaged(
            path,
            f"record {first} has label {int(labels[first])}, out of range 0 to 9",
            remedy,
        )


def _read_batch(path: Path) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    data = read_bytes(path)
    if not data or len(data) % RECORD:
        raise damaged(
            path,
            f"has {len(data)} bytes, not a multiple of the record's {RECORD}: truncated or not a "
            "CIFAR-10 file",
            REMEDY,
        )
    records = np.frombuffer(data, np.uint8).reshape(-1, RECORD)
    check_labels(path, records[:, 0], REMEDY)
    return records[:, 0], records[:, 1:]


def _class_names(folder: Path) -> tuple[str, ...]:
    path = folder / "batches.meta.txt"
    if not path.is_file():
        return CIFAR10_CLASSES
    lines = read_bytes(path).decode("utf-8", errors="replace").split("\n")
    names = tuple(line.strip() for line in lines if line.strip())
    if len(names) != 10 or len(set(names)) != 10:
        raise damaged(
            path, f"names {len(set(names))} classes instead of 10", f"{REMEDY} or delete this file"
        )
    return names
