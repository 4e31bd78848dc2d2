"""Single arrays in .npy files: mapped into memory to read, written row by row."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._util import atomic_file
from pmt.datasets.damage import damaged, missing

MAGIC = np.lib.format.MAGIC_PREFIX


def map_npy(path: Path, remedy: str) -> npt.NDArray[Any]:
    """Map an array into memory; only what is used is read. Pickled objects are refused.

    Parameters
    ----------
    path
        The file.
    remedy
        What the error tells the user to do.

    Returns
    -------
    numpy.ndarray
        Read-only.

    Raises
    ------
    FileNotFoundError
        No such file.
    ValueError
        The file cannot be read, is no .npy file, or is longer or shorter than its header says.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
        size = path.stat().st_size
    except FileNotFoundError:
        raise missing(path, "no such file", remedy) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise damaged(path, f"cannot be read ({reason})", "check the file and its rights") from None
    if magic != MAGIC:
        raise damaged(path, "not a .npy file", remedy)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # remarks about headers that Python 2 wrote
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        expected = int(array.offset) + int(array.nbytes)
    # A damaged header makes numpy raise nearly anything: all of it means the same to the user.
    except Exception as error:
        reason = " ".join(str(error).split())
        raise damaged(path, f"truncated or not a whole .npy array ({reason})", remedy) from None
    if expected != size:
        raise damaged(path, f"has {size} bytes where its header says {expected}", remedy)
    return np.asarray(array)


def write_npy(path: Path, shape: tuple[int, ...], parts: Iterable[npt.NDArray[np.uint8]]) -> None:
    """Write a uint8 array part by part, so that it need not fit into memory.

    Parameters
    ----------
    path
        The file; there whole or not at all, see :func:`pmt._util.atomic_file.writing`.
    shape
        Of the whole array.
    parts
        Arrays of shape (n, *shape[1:]) whose numbers of rows add up to ``shape[0]``.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    size = int(np.prod(shape))
    with atomic_file.writing(path, size) as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            file.write(np.ascontiguousarray(part).data)
