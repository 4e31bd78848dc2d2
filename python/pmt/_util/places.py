"""Paths to which nothing can be written: below files, in read-only or removed folders, in loops."""

import errno
import os
import tempfile
from pathlib import Path

from pmt.errors import ExistingFileError

_LONGEST_NAME, _LONGEST_PATH = 255, 4_000  # of Linux; folders have files with names of their own
_SHOWN = 40  # characters of a name that is too long


def check_place(path: Path, what: str) -> None:
    """Raise OSError where nothing can be written to a path, whatever its folders are named.

    A folder above it is a file or read-only, it or such a folder is a link to itself, or it begins
    at a working folder that was removed.
    """
    if not path.is_absolute():
        check_working_folder()
    for place in (path, *path.parents):
        try:
            place.stat()
        except OSError as error:
            if error.errno == errno.ELOOP and place.is_symlink():
                raise ExistingFileError(f"{what}: {place} is a link to itself; remove it") from None
    for place in path.parents:
        if place.exists() and not place.is_dir():
            raise NotADirectoryError(f"{what}: {place} is a file, not a folder")
    check_writable(path, what)


def check_folder_place(path: Path, what: str) -> None:
    """As :func:`check_place`, for a folder to make; no link may lead to a folder that is not there.

    ExistingFileError names the link.
    """
    check_place(path, what)
    for place in (path, *path.parents):
        if place.is_symlink() and not place.exists():
            named = what if place == path else f"{what}: {place}"
            raise ExistingFileError(
                f"{named} is a link to a folder that is not there; make the folder"
            )


def check_length(path: str, what: str, *, written: bool = False) -> None:
    """Raise ValueError where a name is longer than file systems take.

    One that is ``written`` needs room for the suffix of a lock.
    """
    longest = _LONGEST_NAME - (len(".lock") if written else 0)
    bounds = [("the path", path, _LONGEST_PATH)]
    bounds += [("a name", part, longest) for part in Path(path).parts]
    for what_is_long, text, most in bounds:
        if (size := len(os.fsencode(text))) > most:
            raise ValueError(
                f"{what} {text[:_SHOWN]}...: {what_is_long} has {size:,} bytes, at most {most:,} "
                "are supported; choose a shorter one"
            )


def check_writable(path: Path, what: str) -> None:
    """Raise PermissionError where a path, or the first folder there above it, is read-only."""
    place = Path(os.path.realpath(path)) if path.is_symlink() else path
    folder = next(one for one in (place, *place.absolute().parents) if os.path.isdir(one))
    if not os.access(folder, os.W_OK | os.X_OK) or not _takes_files(folder):
        raise PermissionError(
            f"{what}: {folder} cannot be written; choose a folder that you may write to"
        )


def _takes_files(folder: Path) -> bool:
    """Whether a file can be made in a folder: root may write to /proc, which takes none."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError as error:
        refused = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.EINVAL)
        return error.errno not in refused  # a full disk is told of by what writes


def check_working_folder() -> None:
    """Raise FileNotFoundError where the working folder was removed."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise FileNotFoundError(
            "the working folder was removed, and no path is found from it; change to another one"
        ) from None
