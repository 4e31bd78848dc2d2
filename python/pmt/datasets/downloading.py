"""Places of data sets: the one of the package, and those fetched: resumed, checked, unpacked."""

import http.client
import logging
import os
import shlex
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import IO

from pmt._util import atomic_file
from pmt._util.checks import SPLITS, SplitName, checked_path, checked_word
from pmt._util.extras import import_extra
from pmt._util.progress import ProgressLine
from pmt._util.text import did_you_mean, nearest
from pmt.datasets.array_files import read_npz_stream
from pmt.datasets.catalog import CATALOG, FASHION_MNIST_CLASSES, RemoteFile, Source
from pmt.datasets.dataset import Dataset
from pmt.datasets.files import damaged, missing
from pmt.errors import DownloadError

VARIABLE = "PMT_DATA"
_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())


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
    """Return the path itself, if it is there, or the place of the downloaded set that it names."""
    place = checked_path("path", path)
    return data_folder() / place if str(path) in CATALOG and not place.exists() else place


def located(path: str | os.PathLike[str]) -> Path:
    """Return the result of :func:`named`, or raise a FileNotFoundError where nothing is there."""
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
    if folder.name not in CATALOG:
        return
    # Files that a download keeps for itself have names with a dot.
    if not is_ours and not all(entry.name.startswith(".") for entry in folder.iterdir()):
        return
    command = f"pmt download {folder.name}" + (
        "" if is_ours else f" --root {shlex.quote(str(folder.parent))}"
    )
    raise damaged(folder, "the download is not complete", f"`{command}` continues it")


def bundled(split: SplitName = "train") -> Dataset:
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
    checked_word("split", split, SPLITS)
    resource = resources.files("pmt").joinpath("data", f"fashion_mnist_{split}.npz")
    try:
        with resource.open("rb") as file:
            return read_npz_stream(file, f"fashion_mnist_{split}.npz", FASHION_MNIST_CLASSES)
    except FileNotFoundError:
        raise missing(
            str(resource), "the bundled images are not installed", "install the package again"
        ) from None


CHUNK = 1 << 18
PATIENCE = 30  # seconds without a byte
USER_AGENT = "poor-mans-training"
# Holds the SHA-256 of each file that was fetched (and unpacked).
STAMP = ".pmt-download"


def download(name: str, root: str | os.PathLike[str] | None = None) -> Path:
    """Fetch a data set, unless it is there already; ``pmt.datasets.load(name)`` then reads it.

    An interrupted download is resumed. Every file is checked against its published SHA-256 before
    anything else is done with it; archives are unpacked and then removed. A file that you put into
    the folder yourself is checked and taken instead of being fetched.

    Parameters
    ----------
    name : str
        One of ``sorted(pmt.datasets.CATALOG)``, for instance "cifar10".
    root : str or pathlib.Path, optional
        Folder that gets a sub-folder `name`; by default :func:`pmt.datasets.data_folder`,
        which the environment variable PMT_DATA sets.

    Returns
    -------
    pathlib.Path
        The data set's folder.

    Raises
    ------
    ValueError
        If the name is unknown.
    OSError
        If a file cannot be fetched, is not the published one, or finds no space; the message gives
        its place, address, size and SHA-256, so that it can be put there by hand.
    ModuleNotFoundError
        If pooch is not installed.
    """
    source = _source(name)
    folder = Path(root if root is not None else data_folder()).expanduser() / name
    done = _stamped(folder)
    left = [file for file in source.files if not _is_there(folder, file, done)]
    if not left:
        return folder
    pooch = _pooch()
    _check_space(folder, left)
    for file in left:
        path = _fetched(pooch, folder, file, source)
        if file.unpack:
            _unpack(pooch, path)
        done.append(file.sha256)
        atomic_file.write_text(folder / STAMP, "\n".join(done) + "\n")
    return folder


def _source(name: str) -> Source:
    if not isinstance(name, str) or name not in CATALOG:
        near = did_you_mean(str(name), sorted(CATALOG))
        raise ValueError(f"name={name!r}: no such data set to download{near}")
    return CATALOG[name]


def _stamped(folder: Path) -> list[str]:
    path = folder / STAMP
    return path.read_text(errors="replace").split() if path.is_file() else []


def _is_there(folder: Path, file: RemoteFile, done: list[str]) -> bool:
    return file.sha256 in done and (file.unpack or (folder / file.folder / file.name).is_file())


def _check_space(folder: Path, files: list[RemoteFile]) -> None:
    """Ask for twice the size: the archive and the files from it."""
    folder.mkdir(parents=True, exist_ok=True)
    needed = sum(file.size * (2 if file.unpack else 1) for file in files)
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise DownloadError(
            f"{folder}: {needed / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free; free some "
            "space or choose another folder (PMT_DATA)"
        )


def _fetched(pooch: ModuleType, folder: Path, file: RemoteFile, source: Source) -> Path:
    target = folder / file.folder / file.name
    _log.info("%s, %d bytes, from %s", target, file.size, file.url)
    try:
        pooch.retrieve(
            file.url,
            known_hash=f"sha256:{file.sha256}",
            fname=file.name,
            path=target.parent,
            downloader=_downloader(target, file),
        )
    except (OSError, http.client.HTTPException) as error:
        reason = _reason(error)
    except ValueError:  # so pooch says that the hash differs
        reason = "what the server sends is not the published file, its SHA-256 differs"
    else:
        return target
    advice = f"; {source.note}" if source.note else ""
    raise DownloadError(
        f"{target}: could not be fetched ({reason}); try again, which continues where it stopped, "
        f"or put the file there yourself: {file.url}, {file.size:,} bytes, SHA-256 "
        f"{file.sha256}{advice}"
    )


def _unpack(pooch: ModuleType, archive: Path) -> None:
    """Replace an archive, its SHA-256 checked, by its contents beside it, whole or not at all."""
    aside = archive.with_name(f".{archive.name}.unpacked")
    _log.info("%s is unpacked", archive)
    try:
        pooch.Untar(extract_dir=aside.name)(str(archive), "download", None)
        shutil.copytree(aside, archive.parent, copy_function=os.replace, dirs_exist_ok=True)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    archive.unlink()


def _downloader(target: Path, file: RemoteFile) -> Callable[[str, str, object], None]:
    """Make the function by which pooch fills its temporary file; pooch deletes that on failure."""

    def fill(url: str, output_file: str, _pooch: object) -> None:
        part = target.with_name(f".{target.name}.part")
        resumed_download(url, part, file.size)
        part.replace(output_file)

    return fill


def _reason(error: BaseException) -> str:
    text = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
    code = getattr(error, "code", None)
    text = f"HTTP {code} {text}" if isinstance(code, int) else str(text)
    return " ".join(text.split()) or type(error).__name__


def _pooch() -> ModuleType:
    pooch: ModuleType = import_extra("pooch", "downloading needs pooch", "data")
    pooch.get_logger().setLevel("WARNING")
    return pooch


def resumed_download(url: str, part: Path, size: int) -> None:
    """Fill a file up to its size; bytes of a failed attempt stay in it for the next one.

    A connection that ends early is opened again as long as each attempt brings something; then its
    error is raised. Bytes that the file holds already are taken for the beginning; a file that
    is too long is begun anew.
    """
    if _length(part) > size:
        part.unlink()
    done = _length(part) // 1000
    with ProgressLine(size // 1000 + 1, done=done, unit="kilobyte") as line:
        while (before := _length(part)) < size:
            try:
                _append(url, part, size, line)
            except urllib.error.HTTPError:
                raise
            except (OSError, http.client.HTTPException):
                if _length(part) <= before:
                    raise
            if _length(part) <= before:
                raise ConnectionError(f"the connection ended after {before:,} of {size:,} bytes")


def _length(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _append(url: str, part: Path, size: int, line: ProgressLine) -> None:
    start = _length(part)
    headers = {"User-Agent": USER_AGENT}
    if start:
        _log.info("%s goes on after %d of %d bytes", part, start, size)
        headers["Range"] = f"bytes={start}-"
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        goes_on = start and response.status == http.client.PARTIAL_CONTENT
        with part.open("ab" if goes_on else "wb") as file:
            _copy(response, file, size, line)


def _copy(
    response: http.client.HTTPResponse, file: IO[bytes], size: int, line: ProgressLine
) -> None:
    done = file.tell()
    # `read1` gives what has arrived, so that a connection that breaks loses nothing.
    while done < size and (chunk := response.read1(min(CHUNK, size - done))):
        file.write(chunk)
        done += len(chunk)
        line.update(done // 1000, Path(file.name).name.strip(".").removesuffix(".part"))
