"""Arrays that lie in files and are mapped into memory, so that a data set need not fit there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["all_finite", "chosen_rows", "is_mapped"]

Array = npt.NDArray[Any]

_AT_ONCE = 1 << 22  # bytes that are read or copied at once
_HELD = 1 << 24  # bytes of chosen rows that are copied into memory; more go to a file


def is_mapped(array: Array) -> bool:
    """Whether an array lies in a file."""
    return isinstance(array, np.memmap) and getattr(array, "filename", None) is not None


def all_finite(array: Array) -> bool:
    """Whether no number is infinite or NaN; a file is read part by part."""
    return all(bool(np.isfinite(array[part]).all()) for part in _parts(array))


def chosen_rows(array: Array, indices: npt.NDArray[np.integer]) -> Array:
    """Return a read-only copy of some rows.

    Of an array in a file they are in memory where they are few, and otherwise in a file without a
    name, beside that file, which is gone with the array.
    """
    row_bytes = array[:1].nbytes
    if not is_mapped(array) or len(indices) * row_bytes <= _HELD:
        rows: Array = np.asarray(array)[indices]
        rows.flags.writeable = False
        return rows
    shape = (len(indices), *array.shape[1:])
    with tempfile.TemporaryFile(dir=Path(array.filename).parent) as file:  # type: ignore[attr-defined]
        for part in _parts(array, len(indices)):
            file.write(np.ascontiguousarray(array[indices[part]]).data)
        file.flush()
        mapped = np.memmap(file, array.dtype, "r", shape=shape)
    mapped.filename = array.filename  # type: ignore[attr-defined]
    return mapped


def _parts(array: Array, count: int | None = None) -> Iterator[slice]:
    rows = max(1, _AT_ONCE // max(1, array[:1].nbytes))
    for first in range(0, len(array) if count is None else count, rows):
        yield slice(first, first + rows)
