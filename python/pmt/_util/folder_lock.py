"""One process per folder: a lock of the operating system, and who holds it.

The system gives back the locks of a process that ends, however it ends.
"""

from __future__ import annotations

import os
import platform
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pmt._util import atomic_file
from pmt.errors import ExistingFileError, FolderBusyError

if TYPE_CHECKING:
    from filelock import BaseFileLock

_LARGEST = 1_024  # bytes, more than any lock's text has


class FolderLock:
    """Holds a folder for one thread of one process; on other machines, too, that share it.

    The lock file, whose folder is made, is there while the lock is held, and after a process that
    was killed until the next one. One that is not ``of_thread`` is held by the whole process.
    """

    def __init__(self, path: str | Path, *, of_thread: bool = True) -> None:
        self.path = Path(path)
        self._of_thread = of_thread
        self._taken: tuple[int, int] | None = None
        self._lock: BaseFileLock | None = None  # of the last one to hold it

    @classmethod
    def of_folder(cls, folder: str | Path) -> FolderLock:
        """Return the lock of a folder, beside it, whichever of its names is given."""
        real = Path(folder).resolve()
        return cls(real.with_name(f"{real.name}.lock"))

    @property
    def held(self) -> bool:
        """Whether this thread has taken the lock and not given it back."""
        return self._lock is not None and self._lock.is_locked

    @property
    def is_lost(self) -> bool:
        """Whether this thread holds a lock whose file was removed: others no longer see it."""
        return self.held and self._file() != self._taken

    def _file(self) -> tuple[int, int] | None:
        """Return the identity of the lock file; None where there is none."""
        try:
            found = self.path.lstat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def acquire(self) -> bool:
        """Take the lock if nobody holds it; return whether it is ours now.

        A FileExistsError says that the file is none that a lock wrote, another OSError that the
        folder cannot be written, or that its file system has no locks.
        """
        from filelock import FileLock, Timeout  # here: `import pmt` would take a fifth longer

        if self.held:
            return False
        self._check_file()
        # A new one: one from before a fork takes nothing.
        lock = FileLock(self.path, thread_local=self._of_thread)
        with atomic_file.explaining("the lock could not be taken", self.path), suppress(Timeout):
            lock.acquire(blocking=False)
        if not lock.is_locked:
            if not self.path.exists():  # where none can be made, filelock times out, too
                with atomic_file.explaining("nothing can be made in this folder", self.path.parent):
                    self.path.touch()
            return False
        with suppress(OSError):  # who holds it is only a courtesy
            self.path.write_text(f"{platform.node()}, process {os.getpid()}\n")
        self._lock, self._taken = lock, self._file()
        return True

    def _check_file(self) -> None:
        """Raise FileExistsError rather than write over a file of others, such as uv.lock."""
        with suppress(FileNotFoundError):
            found = self.path.lstat()
            if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
                raise ExistingFileError(
                    f"{self.path} is in the way of the lock of that name, which pmt needs: move "
                    "it, or choose another folder"
                )

    def release(self) -> None:
        """Give the lock back; nothing happens where it is not ours."""
        if self._lock is None or not self.held:
            return
        if not self.is_lost:
            with suppress(OSError):
                self.path.unlink()  # first: afterwards it may be another's
        self._lock.release()

    @contextmanager
    def holding(self, what: str) -> Iterator[None]:
        """Hold the lock in a block; one that we hold already stays ours after it.

        A BlockingIOError says that another thread or process holds it; ``what`` is locked, and
        named in the error. Others are those of :meth:`acquire`.
        """
        if self.held:
            yield
            return
        self.take(what)
        try:
            yield
        finally:
            self.release()

    def take(self, what: str, kind: str = "folder") -> None:
        """Take the lock; a FolderBusyError names it as in :meth:`holding`, and its kind."""
        if not self.acquire():
            raise FolderBusyError(
                f"{what} is in use by {self.holder() or 'another process'}: wait until it has "
                f"ended, or choose another {kind} (the lock is {self.path})"
            )

    def holder(self) -> str:
        """Return who took the lock last, ``"host, process 123"``; empty where nobody says so."""
        try:
            return self.path.read_text(errors="replace").strip()
        except OSError:
            return ""
