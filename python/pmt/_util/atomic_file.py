"""Files that are either wholly there or not there at all."""

import errno
import glob
import itertools
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pmt._util import processes

# Longer than any process of another machine stops between two writes to one file.
_SECONDS_UNTIL_STRAY = 86_400.0
_numbers = itertools.count()


@contextmanager
def writing(path: str | Path, size: int) -> Iterator[BinaryIO]:
    """Open a file aside; at the end of the block it is flushed to disk and renamed into place.

    Whatever ends the block early, Ctrl-C too, leaves the old file and removes the one aside. What
    processes that were killed left aside of this file is removed as well. The new file has the mode
    of the old one; a link stays one, and what it points to is replaced. A device or a pipe is
    written to as it is.

    `size` is the number of bytes, for the error.
    """
    path = Path(path)
    mode = _mode(path)
    if mode is not None and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        # By its link: that of a pipe, such as /dev/stdout, leads to no path.
        with path.open("wb") as file:
            yield file
        return
    if path.is_symlink():
        path = Path(os.path.realpath(path))
    remove_strays(path)
    aside = aside_of(path)
    try:
        with aside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            aside.chmod(stat.S_IMODE(mode))
        aside.replace(path)
    except OSError as error:
        with suppress(OSError):
            aside.unlink()
        ours = error.errno is not None and str(error.filename) in ("None", str(aside))
        if not ours:  # the block's own work failed, not the writing
            raise
        if not path.parent.is_dir():
            text = f"there is no folder {path.parent}; make it, or choose another one"
            raise FileNotFoundError(error.errno, text, str(path)) from error
        raise OSError(
            error.errno,
            f"could not write {size} bytes ({error.strerror}); the file that was there is "
            f"unchanged; {write_remedy(error)}",
            str(path),
        ) from error
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise
    sync(path.parent)


def write_remedy(error: OSError) -> str:
    """Return the remedy for a file that could not be written."""
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "choose a folder that you may write to"
    if error.errno == errno.EISDIR:
        return "name a file in it"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "free some space or choose another folder"
    return "choose another folder"


@contextmanager
def explaining(problem: str, path: str | Path) -> Iterator[None]:
    """Give an OSError of the block a problem, its reason and its remedy, and the file's name."""
    try:
        yield
    except OSError as error:
        text = f"{problem} ({error.strerror}); {write_remedy(error)}"
        raise OSError(error.errno, text, str(path)) from error


def _mode(path: Path) -> int | None:
    """Return the kind and the permissions of a file; None where there is none."""
    try:
        return path.stat().st_mode
    except OSError:
        return None


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a whole file as :func:`writing` does."""
    with writing(path, len(data)) as file:
        file.write(data)


def write_text(path: str | Path, text: str) -> None:
    """As :func:`write_bytes`, for UTF-8 text."""
    write_bytes(path, text.encode())


def aside_of(path: Path, suffix: str = "part") -> Path:
    """Return a name beside ``path`` that is nobody else's and says whose it is."""
    owner = f"{processes.machine_tag()}.{os.getpid()}"
    return path.with_name(f".{path.name}.{next(_numbers)}.{owner}.{suffix}")


def sync(path: str | Path) -> None:
    """Bring a file, or a folder's names, to disk, so that a rename outlives a power cut.

    Not every system can; the files themselves are whole without it.
    """
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_strays(path: str | Path) -> None:
    """Remove temporary files that dead processes left beside ``path``.

    Whether a process of another machine lives cannot be seen; its file counts as left a day after
    the last write.
    """
    path = Path(path)
    for stray in path.parent.glob(f".{glob.escape(path.name)}.*.*.*.part"):
        if is_left(stray):
            with suppress(OSError):
                stray.unlink()


def is_left(stray: Path) -> bool:
    """Whether a temporary file, named by :func:`aside_of`, belongs to a dead process."""
    *_, tag, pid, _ = stray.name.split(".")
    if not pid.isdecimal():
        return False
    if tag == processes.machine_tag():
        return not processes.is_running(int(pid))
    try:
        return time.time() - stray.stat().st_mtime > _SECONDS_UNTIL_STRAY
    except OSError:
        return False
