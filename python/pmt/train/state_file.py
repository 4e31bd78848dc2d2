"""The file that holds a learner's states: one learner's at a time, of all processes."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import ClassVar
from weakref import WeakValueDictionary

from pmt import _core
from pmt._util.atomic_file import aside_of, explaining, remove_strays, sync
from pmt._util.folder_lock import FolderLock
from pmt.errors import FolderBusyError

_PROBLEM = "the states could not be stored"
_UNSAFE = "the states are stored, but a power cut may undo it"


class StateFile:
    """A file of states, until it is collected or a newer one of this process takes its place.

    It is made where it is missing, ``size`` bytes that no state was written to. A FolderBusyError
    says that another process holds the file, a ValueError that it is a device or the like or has
    several names, another OSError that it cannot be there. ``on_trial`` is what its learner says of
    the state in force; ``trial_goes_on``, what that of the file taken over said.
    """

    _open: ClassVar[WeakValueDictionary[Path, StateFile]] = WeakValueDictionary()
    _opening: ClassVar[Lock] = Lock()

    def __init__(self, path: Path, size: int) -> None:
        with self._opening:  # of two threads the later one takes the file over
            self._take(path, size)

    def _take(self, path: Path, size: int) -> None:
        self.path = path.absolute()
        self.on_trial = self.trial_goes_on = False
        self._lock: FolderLock | None = None
        self._process = os.getpid()
        real = Path(os.path.realpath(path))
        if real.exists() and not (real.is_file() or real.is_dir()):
            raise ValueError(f"storage={str(path)!r} is no regular file: choose another file")
        with explaining(_PROBLEM, path):
            if not os.path.lexists(real):
                _make(real, size)
            with real.open("r+b") as file:
                found = os.fstat(file.fileno())
        self._file = _identity(found)
        if found.st_nlink > 1:  # the lock is of a name
            raise ValueError(
                f"storage={str(path)!r} has {found.st_nlink} names (hard links), and a file of "
                "states has one, so that two learners cannot write to it: copy it and give the "
                "copy"
            )
        earlier = self._open.get(real)
        if earlier is not None and earlier._is_this_process_s:
            # Such as that of a notebook's cell that runs again.
            self._lock, earlier._lock = earlier._lock, None
            self.trial_goes_on = earlier.on_trial  # nothing was reset
        else:
            lock = FolderLock(real.with_name(f"{real.name}.lock"), of_thread=False)
            lock.take(f"storage={str(path)!r}", "file")
            self._lock = lock
        self._open[real] = self

    @contextmanager
    def storing(self, core: _core.Learner | None = None) -> Iterator[None]:
        """Explain an OSError of the block, and bring its states to disk.

        One says first if the file is gone or another's, or, by its learner, was cut off meanwhile.
        """
        if self._lock is None or not self._is_this_process_s:
            who = "a newer learner" if self._lock is None else "the parent of this process"
            raise FolderBusyError(
                f"{_PROBLEM}: {who} has storage={str(self.path)!r}; go on with that one"
            )
        if not self.path.is_file() or _identity(self.path.stat()) != self._file:
            text = f"{_PROBLEM}: the file is gone; open a new learner"
            raise FileNotFoundError(errno.ENOENT, text, str(self.path))
        if core is not None and core.is_cut_off:
            text = f"{_PROBLEM}: the file was cut off; open a new learner with another file"
            raise OSError(errno.EIO, text, str(self.path))
        with explaining(_PROBLEM, self.path):
            yield
        # By its name: the core holds the file in a stream of C++, which cannot bring it to disk.
        with explaining(_UNSAFE, self.path), self.path.open("rb+") as file:
            os.fsync(file.fileno())

    def __del__(self) -> None:
        if self._lock is not None and self._is_this_process_s:
            self._lock.release()

    @property
    def _is_this_process_s(self) -> bool:
        return self._process == os.getpid()  # not so after a fork


def _make(path: Path, size: int) -> None:
    """Make a file whole or not at all, so that a shorter one was cut off."""
    remove_strays(path)
    aside = aside_of(path)
    try:
        with aside.open("wb") as file:
            file.write(b"\xff" * size)
            file.flush()
            os.fsync(file.fileno())
        if not path.exists():  # else another process has made it meanwhile
            aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    sync(path.parent)


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
