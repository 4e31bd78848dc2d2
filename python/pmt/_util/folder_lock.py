"""One process per folder: a lock file that says who works on it, and is known to be stale."""

from __future__ import annotations

import json
import os
import platform
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pmt._util import atomic_file, processes

__all__ = ["FolderLock", "LockLostError"]

_SECONDS_BETWEEN_BEATS = 20.0
_SECONDS_UNTIL_STALE = 300.0
_SECONDS_OF_A_TAKEOVER = 60.0


class LockLostError(OSError):
    """Another process took the lock, because this one gave no sign of life for minutes."""


class FolderLock:
    """Holds a folder for one process.

    The file holds host, process and a token, and is there whole or not at all. A lock is stale if
    it holds nothing of that kind, or if its process is gone, where that can be seen (same machine,
    same boot, same container), and elsewhere if its holder, who touches the file every 20 s, has
    not done so for 5 minutes by the file system's own clock.

    Parameters
    ----------
    path : str or pathlib.Path
        The lock file; its folder exists.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.token = uuid.uuid4().hex
        self._stop = threading.Event()
        self._lost = False
        self._beats: threading.Thread | None = None
        self._owner = (0, 0)  # process and thread
        self._threads = threading.Lock()

    @classmethod
    def of_folder(cls, folder: str | Path) -> FolderLock:
        """Return the lock of a folder, beside it, whichever of its names is given."""
        real = Path(folder).resolve()
        return cls(real.with_name(f"{real.name}.lock"))

    @property
    def held(self) -> bool:
        """Whether this thread of this process has taken the lock and not given it back."""
        return self._owner == _here()

    def acquire(self) -> bool:
        """Take the lock if nobody holds it; return whether it is ours now.

        Raises
        ------
        OSError
            If the folder cannot be written.
        """
        with self._threads:
            if self._owner[0] == os.getpid():  # a thread's of this process
                return False
            return self._acquire()

    def _acquire(self) -> bool:
        if self._read() is not None and not self.is_stale():
            return False
        taken = False

        def place(aside: Path, path: Path) -> None:
            nonlocal taken
            taken = self._place(aside)
            aside.unlink(missing_ok=True)

        text = self._text().encode()
        with atomic_file.writing(self.path, len(text), place=place) as file:
            file.write(text)
        if taken:
            self._owner = _here()
            self._stop.clear()
            self._beats = threading.Thread(target=self._beat, name="pmt folder lock", daemon=True)
            self._beats.start()
        return taken

    def release(self) -> None:
        """Give the lock back; one that another process took meanwhile is left alone."""
        self._stop.set()
        if self._beats is not None:
            self._beats.join()
            self._beats = None
        self._owner = (0, 0)
        if self._is_ours():
            self.path.unlink(missing_ok=True)

    @contextmanager
    def holding(self, what: str) -> Iterator[None]:
        """Hold the lock in a block; one that we hold already stays ours after it.

        Raises
        ------
        BlockingIOError
            If another process holds it; ``what`` is locked, and named in the error.
        OSError
            If the folder cannot be written.
        """
        if self.held:
            yield
            return
        try:
            if not self.acquire():
                raise BlockingIOError(
                    f"{what} is in use by {self.holder() or 'another process'}: wait until it has "
                    f"ended, or choose another folder (the lock is {self.path})"
                )
            yield
        finally:
            if self.held:
                self.release()

    def check(self) -> None:
        """Raise LockLostError if another process has taken the lock."""
        if self._lost:
            raise LockLostError(
                f"{self.path}: another process took this run, since this one gave no sign of "
                f"life for {_SECONDS_UNTIL_STALE:.0f} s, or the lock was removed; this one stops"
            )

    def holder(self) -> str:
        """Return who holds the lock, ``"host, process 123"``; empty if nobody does."""
        owner = self._read()
        if owner is None:
            return ""
        return f"{owner.get('host', '?')}, process {owner.get('pid', '?')}"

    def is_stale(self) -> bool:
        """Whether there is a lock of nobody, or its process is gone or gives no sign of life."""
        owner = self._read()
        if owner is None:
            return False
        pid = owner.get("pid")
        if not isinstance(pid, int):
            return True
        if owner.get("machine") == processes.machine():
            started = processes.started(pid)
            return not started or started != owner.get("started")
        return self._age() > _SECONDS_UNTIL_STALE

    def _place(self, aside: Path) -> bool:
        """Make a file the lock, unless somebody holds it."""
        try:
            os.link(aside, self.path)
            return True
        except FileExistsError:
            # A network file system may say so of a link that it has made.
            return self._is_ours() or self._replace(aside, self.is_stale)
        except OSError:  # a file system without links
            return self._replace(aside, lambda: self._read() is None or self.is_stale())

    def _replace(self, aside: Path, is_free: Callable[[], bool]) -> bool:
        """Replace a free lock. A second file keeps two processes from doing so at once."""
        if not is_free():
            return False
        guard = self.path.with_name(self.path.name + ".takeover")
        with suppress(FileNotFoundError):
            if self._age(guard) > _SECONDS_OF_A_TAKEOVER:
                guard.unlink()
        try:
            os.close(os.open(guard, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        except FileExistsError:
            return False
        try:
            if not is_free():
                return False
            os.replace(aside, self.path)
            return True
        finally:
            guard.unlink(missing_ok=True)

    def _text(self) -> str:
        owner = {
            "host": platform.node(),
            "machine": processes.machine(),
            "pid": os.getpid(),
            "started": processes.started(os.getpid()),
            "token": self.token,
        }
        return json.dumps(owner, sort_keys=True) + "\n"

    def _read(self) -> dict[str, Any] | None:
        """Return the owner; None without a lock, and nothing of a file that names none."""
        try:
            owner = json.loads(self.path.read_text())
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError):
            return {}
        return owner if isinstance(owner, dict) else {}

    def _is_ours(self) -> bool:
        owner = self._read()
        return owner is not None and owner.get("token") == self.token

    def _age(self, path: Path | None = None) -> float:
        """Return the seconds since a file was touched, by the clock of its file system."""
        now = atomic_file.aside_of(self.path)
        try:
            now.touch()
            return now.stat().st_mtime - (path or self.path).stat().st_mtime
        finally:
            now.unlink(missing_ok=True)

    def _beat(self) -> None:
        while not self._stop.wait(_SECONDS_BETWEEN_BEATS):
            # A file system that is away for a moment is no reason to give up.
            with suppress(OSError):
                if not self._is_ours():
                    self._lost = True
                    return
                os.utime(self.path)


def _here() -> tuple[int, int]:
    return os.getpid(), threading.get_ident()
