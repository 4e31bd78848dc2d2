"""CIFAR in its official python layout: pickled dicts, read without running pickled code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pmt.datasets.array_pickle import load_array_pickle
from pmt.datasets.cifar_frame import PIXELS, Archive, Batch, LabelKind, Variety, check_labels
from pmt.datasets.damage import damaged, read_bytes


def _read_batch(path: Path, variety: Variety, kind: LabelKind) -> Batch:
    remedy = variety.remedy("python")
    batch = _read_dict(path, ("data", kind.key), remedy)
    planes, labels = batch["data"], batch[kind.key]
    is_planes = isinstance(planes, np.ndarray) and planes.ndim == 2 and planes.shape[1] == PIXELS
    if not is_planes or len(planes) == 0:
        found = getattr(planes, "shape", type(planes).__name__)
        raise damaged(path, f"data is {found}, not uint8 of shape (N, {PIXELS})", remedy)
    if not isinstance(labels, list) or not all(type(label) is int for label in labels):
        raise damaged(path, f"{kind.key} is not a list of integers", remedy)
    if len(labels) != len(planes):
        raise damaged(path, f"{len(labels)} {kind.key} for {len(planes)} images", remedy)
    # A label beyond int64 would overflow in numpy before its check: clip it to a wrong one.
    numbers = np.array([min(max(label, -1), 1 << 31) for label in labels], np.int64)
    check_labels(path, numbers, kind, remedy)
    return numbers, planes


def _read_dict(path: Path, keys: Sequence[str], remedy: str) -> dict[str, Any]:
    content = load_array_pickle(path, read_bytes(path))
    if not isinstance(content, dict) or any(key not in content for key in keys):
        wanted = " and ".join(repr(key) for key in keys)
        raise damaged(path, f"not a pickled dict with {wanted}", remedy)
    return content


def _read_names(folder: Path, variety: Variety, kind: LabelKind) -> tuple[str, ...] | None:
    path = folder / variety.names_pickle
    if not path.is_file():
        return None
    remedy = variety.remedy("python")
    listed = _read_dict(path, (kind.names_key,), remedy)[kind.names_key]
    raw = listed if isinstance(listed, list) else []
    names = [name.decode("utf-8", "replace") if isinstance(name, bytes) else name for name in raw]
    count = len(kind.class_names)
    if len(names) != count or not all(isinstance(name, str) and name.strip() for name in names):
        raise damaged(path, f"{kind.names_key} is not a list of {count} names", remedy)
    return tuple(names)


PYTHON = Archive("python", "", _read_batch, _read_names)
