"""The file that holds a learner's states: one learner's at a time, of all processes."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar
from weakref import WeakValueDictionary

from pmt._util.atomic_file import explaining
from pmt._util.folder_lock import FolderLock
from pmt.errors import FolderBusyError

_PROBLEM = "the states could not be stored"


class StateFile:
    """A file of states, until it is collected or a newer one of this process takes its place.

    A FolderBusyError says that another process holds the file, a ValueError that it is a device or
    the like, another OSError that it cannot be there.
    """

    _open: ClassVar[WeakValueDictionary[Path, StateFile]] = WeakValueDictionary()

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: FolderLock | None = None
        real = path.resolve()
        if real.exists() and not (real.is_file() or real.is_dir()):
            raise ValueError(f"storage={str(path)!r} is no regular file: choose another file")
        with explaining(_PROBLEM, path), real.open("a+b"):
            pass  # made where it is missing
        earlier = self._open.get(real)
        if earlier is not None:  # such as that of a notebook's cell that runs again
            self._lock, earlier._lock = earlier._lock, None
        else:
            lock = FolderLock(real.with_name(f"{real.name}.lock"), of_thread=False)
            lock.take(f"storage={str(path)!r}", "file")
            self._lock = lock
        self._open[real] = self

    @contextmanager
    def storing(self) -> Iterator[None]:
        """Explain an OSError of the block; one says first if the file is gone or another's."""
        if self._lock is None:
            raise FolderBusyError(
                f"{_PROBLEM}: a newer learner has storage={str(self.path)!r}; go on with that one"
            )
        if not self.path.is_file():
            text = f"{_PROBLEM}: the file is gone; open a new learner"
            raise FileNotFoundError(errno.ENOENT, text, str(self.path))
        with explaining(_PROBLEM, self.path):
            yield

    def __del__(self) -> None:
        if self._lock is not None:
            self._lock.release()
