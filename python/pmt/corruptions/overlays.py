"""Overlays: the photographs of frost that the corruption frost puts on an image."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import numpy as np

from pmt.corruptions.extras import pillow
from pmt.corruptions.noise import Images

# The published script has a sixth file, frost6.jpg, which its random choice never reaches.
FILES = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")
ORIGIN = "https://github.com/hendrycks/robustness/tree/master/ImageNet-C/create_c"
FOLDER = "frost"
VARIABLE = "PMT_DATA"

Overlays = tuple[Images, ...]


def read_overlays(folder: str | os.PathLike[str] | None = None) -> Overlays:
    """Read the five overlays.

    Parameters
    ----------
    folder
        Where the files are; by default ``$PMT_DATA/frost``.

    Returns
    -------
    tuple of numpy.ndarray
        uint8, shape (H, W, 3) each, RGB; transparency is ignored.

    Raises
    ------
    FileNotFoundError
        No folder is known, or files are missing: which, and where to get them.
    ValueError
        Files do not decode: which.
    ModuleNotFoundError
        Pillow is not installed.
    """
    where = _folder(folder)
    missing = [name for name in FILES if not (where / name).is_file()]
    if missing:
        raise FileNotFoundError(
            f"frost needs {', '.join(missing)}, not found in {where}: get them from {ORIGIN} "
            f"and put them there, or into ${VARIABLE}/{FOLDER}"
        )
    overlays, damaged = [], []
    for name in FILES:
        path = where / name
        status = path.stat()
        try:
            overlays.append(_decoded(path, status.st_mtime_ns, status.st_size))
        except (OSError, ValueError, SyntaxError) as error:
            damaged.append(f"{name} ({error})")
    if damaged:
        raise ValueError(
            f"frost cannot decode {', '.join(damaged)} in {where}: get them again from {ORIGIN}"
        )
    return tuple(overlays)


def _folder(folder: str | os.PathLike[str] | None) -> Path:
    if folder is not None:
        return Path(folder)
    data = os.environ.get(VARIABLE)
    if not data:
        raise FileNotFoundError(
            f"frost needs the photographs {', '.join(FILES)}: get them from {ORIGIN}, put them "
            f"into a folder {FOLDER} and set {VARIABLE} to the folder that it is in"
        )
    return Path(data) / FOLDER


@functools.lru_cache(maxsize=2 * len(FILES))
def _decoded(path: Path, modified: int, size: int) -> Images:
    """Decode a file; a changed one, by its time or size, is decoded again."""
    with pillow("frost").open(path) as picture:
        pixels = np.array(picture.convert("RGB"))
    pixels.flags.writeable = False
    return pixels
