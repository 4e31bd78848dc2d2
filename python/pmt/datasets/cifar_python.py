"""CIFAR-10 in its official python layout: pickled dicts with `data` and `labels`.

Source of the format: https://www.cs.toronto.edu/~kriz/cifar.html, "Python version".
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.datasets.array_pickle import load_array_pickle
from pmt.datasets.cifar_binary import PIXELS, batch_files, check_labels, planes_to_images
from pmt.datasets.class_names import CIFAR10_CLASSES, names_for
from pmt.datasets.damage import damaged, read_bytes
from pmt.datasets.dataset import Dataset

REMEDY = "download cifar-10-python.tar.gz again"


def read_cifar_python(
    folder: Path, split: str, class_names: Sequence[str] | None = None
) -> Dataset:
    """Read ``data_batch_*`` (train) or ``test_batch`` (test) without running pickled code.

    A file may hold fewer than the official 10,000 images.

    Parameters
    ----------
    folder
        Folder of the files; ``batches.meta`` names the classes where it is present.
    split
        "train" or "test".
    class_names
        Other names, ten of them.

    Raises
    ------
    FileNotFoundError
        No file for this split, or a gap in the numbers of the training files.
    ValueError
        A pickle that is damaged, hostile, or does not hold what CIFAR-10 holds.
    """
    batches = [_read_batch(path) for path in batch_files(folder, split, "", REMEDY)]
    labels = np.concatenate([labels for labels, _ in batches])
    images = planes_to_images(np.concatenate([planes for _, planes in batches]))
    names = class_names if class_names is not None else _class_names(folder)
    return Dataset(
        images=images,
        labels=labels,
        class_names=names_for(folder, labels, names),
        name="cifar10",
    )


def _read_batch(path: Path) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    batch = _read_dict(path, ("data", "labels"))
    planes, labels = batch["data"], batch["labels"]
    is_planes = isinstance(planes, np.ndarray) and planes.ndim == 2 and planes.shape[1] == PIXELS
    if not is_planes or len(planes) == 0:
        found = getattr(planes, "shape", type(planes).__name__)
        raise damaged(path, f"data is {found}, not uint8 of shape (N, {PIXELS})", REMEDY)
    if not isinstance(labels, list) or not all(type(label) is int for label in labels):
        raise damaged(path, "labels is not a list of integers", REMEDY)
    if len(labels) != len(planes):
        raise damaged(path, f"{len(labels)} labels for {len(planes)} images", REMEDY)
    # A label beyond int64 would overflow in numpy before its check: clip it to a wrong one.
    numbers = np.array([min(max(label, -1), 1 << 31) for label in labels], np.int64)
    check_labels(path, numbers, REMEDY)
    return numbers, planes


def _read_dict(path: Path, keys: Sequence[str]) -> dict[str, Any]:
    content = load_array_pickle(path, read_bytes(path))
    if not isinstance(content, dict) or any(key not in content for key in keys):
        wanted = " and ".join(repr(key) for key in keys)
        raise damaged(path, f"not a pickled dict with {wanted}", REMEDY)
    return content


def _class_names(folder: Path) -> tuple[str, ...]:
    path = folder / "batches.meta"
    if not path.is_file():
        return CIFAR10_CLASSES
    listed = _read_dict(path, ("label_names",))["label_names"]
    raw = listed if isinstance(listed, list) else []
    names = [name.decode("utf-8", "replace") if isinstance(name, bytes) else name for name in raw]
    if len(names) != 10 or not all(isinstance(name, str) and name.strip() for name in names):
        raise damaged(path, "label_names is not a list of 10 names", REMEDY)
    return tuple(names)
