"""Places of data sets: downloaded ones, and the one that comes with the package."""

from __future__ import annotations

import os
import shlex
import sys
from importlib import resources
from pathlib import Path

from pmt._util.checks import checked_split
from pmt._util.text import nearest
from pmt.datasets.catalog import CATALOG
from pmt.datasets.class_names import FASHION_MNIST_CLASSES
from pmt.datasets.dataset import Dataset
from pmt.datasets.files import damaged, missing
from pmt.datasets.npz import read_npz_stream

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
    return data_folder() / place if str(path) in CATALOG and not place.exists() else place


def located(path: str | os.PathLike[str]) -> Path:
    """Return what :func:`named` does, or raise a FileNotFoundError where nothing is there."""
    place = named(path)
    if place.exists():
        return place
    if place.name in CATALOG and place.parent == data_folder():
        remedy = f"fetch it with `pmt download {place.name}` or put it there"
        raise missing(place, "no such data set has been downloaded", remedy)
    if place.name == "bundled":
        remedy = "pmt.datasets.bundled(split) reads the bundled images"
        raise missing(place, "no such file or folder", remedy)
    near = nearest(place.name, ("bundled", *CATALOG))
    remedy = f"did you mean {near!r}?" if near else "check the path"
    raise missing(place, "no such file or folder", remedy)


def refuse_unfinished(folder: Path) -> None:
    """Raise a ValueError for the folder of a download that has not brought a data set yet."""
    is_ours = folder.parent == data_folder()
    # Files that a download keeps for itself have names with a dot.
    if folder.name not in CATALOG or not (is_ours or _holds_only_hidden(folder)):
        return
    command = f"pmt download {folder.name}" + (
        "" if is_ours else f" --root {shlex.quote(str(folder.parent))}"
    )
    raise damaged(folder, "the download is not complete", f"`{command}` continues it")


def _holds_only_hidden(folder: Path) -> bool:
    return all(entry.name.startswith(".") for entry in folder.iterdir())


def bundled(split: str = "train") -> Dataset:
    """Read the bundled sample of Fashion-MNIST, 28 x 28 gray images in ten classes.

    Parameters
    ----------
    split : {"train", "test"}
        "train" or "test".

    Returns
    -------
    Dataset
        About 1,000 images, uint8, shape (N, 28, 28, 1), with 0 as background.

    Raises
    ------
    ValueError
        If `split` is unknown.
    FileNotFoundError
        If the package was installed without its data.

    Notes
    -----
    Source: H. Xiao, K. Rasul and R. Vollgraf, "Fashion-MNIST", 2017, MIT license.
    """
    checked_split(split)
    resource = resources.files("pmt").joinpath("data", f"fashion_mnist_{split}.npz")
    try:
        with resource.open("rb") as file:
            return read_npz_stream(file, f"fashion_mnist_{split}.npz", FASHION_MNIST_CLASSES)
    except FileNotFoundError:
        raise missing(
            str(resource), "the bundled images are not installed", "install the package again"
        ) from None
