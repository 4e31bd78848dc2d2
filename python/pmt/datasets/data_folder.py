"""Where downloaded data sets are kept, and how a name finds one there."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pmt.datasets.catalogue import CATALOGUE
from pmt.datasets.damage import missing

VARIABLE = "PMT_DATA"


def data_folder() -> Path:
    """Return the folder of downloaded data sets.

    It is that of the environment variable PMT_DATA, or ``pmt`` in the cache folder of the
    platform: XDG_CACHE_HOME or ~/.cache; ~/Library/Caches on macOS; LOCALAPPDATA on Windows.
    """
    own = os.environ.get(VARIABLE)
    if own:
        return Path(own).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "pmt"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "pmt"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pmt"


def named(path: str | os.PathLike[str]) -> Path:
    """Return the path itself, or the place of the downloaded data set that it names.

    What exists under the path, seen from the working directory, goes before a name.
    """
    place = Path(path)
    return data_folder() / place if str(path) in CATALOGUE and not place.exists() else place


def located(path: str | os.PathLike[str]) -> Path:
    """Return what :func:`named` does, or raise a FileNotFoundError where nothing is there."""
    place = named(path)
    if place.exists():
        return place
    if place.name in CATALOGUE and place.parent == data_folder():
        remedy = f"fetch it with `pmt download {place.name}` or put it there"
        raise missing(place, "no such data set has been downloaded", remedy)
    raise missing(place, "no such file or folder", "check the path")
