"""Arrays in one .npz file: the same bytes for the same arrays, whatever the version or the time."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import IO, Any

import numpy as np
import numpy.typing as npt

__all__ = ["npz_bytes", "write_npz"]

_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can hold


def write_npz(
    file: IO[bytes],
    arrays: Mapping[str, npt.NDArray[Any]],
    *,
    compressed: bool = False,
    mode: int = 0o644,
) -> None:
    """Write arrays as ``numpy.savez`` does, little-endian; `mode` is that of the files inside.

    Compressed bytes depend on the version of zlib.
    """
    with zipfile.ZipFile(file, "w") as archive:
        for name, values in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", _ZIP_EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
            entry.create_system = 3
            entry.external_attr = mode << 16
            content = io.BytesIO()
            little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
            np.lib.format.write_array(content, little.reshape(values.shape), allow_pickle=False)
            archive.writestr(entry, content.getvalue())


def npz_bytes(arrays: Mapping[str, npt.NDArray[Any]], *, mode: int = 0o644) -> bytes:
    """Return what :func:`write_npz` writes."""
    file = io.BytesIO()
    write_npz(file, arrays, mode=mode)
    return file.getvalue()
