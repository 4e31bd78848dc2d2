"""One process a run: a lock file that says who works on it, and is known to be stale."""

from __future__ import annotations

import json
import os
import platform
import threading
import uuid
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["LockLostError", "RunLock"]

_SECONDS_BETWEEN_BEATS = 20.0
_SECONDS_UNTIL_STALE = 300.0
_SECONDS_OF_A_TAKEOVER = 60.0


class LockLostError(RuntimeError):
    """Another process took the lock, because this one gave no sign of life for minutes."""


class RunLock:
    """Holds a run for as long as its block lasts.

    The file holds host, process and a token. A lock is stale if its process is gone, where that can
    be seen (same machine, same boot, same container), and elsewhere if its holder, who touches the
    file every 20 s, has not done so for 5 minutes by the file system's own clock.

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

    def acquire(self) -> bool:
        """Take the lock if nobody holds it; return whether it is ours now.

        Raises
        ------
        OSError
            If the folder cannot be written.
        """
        if not self._create() and not self._take_over():
            return False
        self._beats = threading.Thread(target=self._beat, name="pmt run lock", daemon=True)
        self._beats.start()
        return True

    def release(self) -> None:
        """Give the lock back; one that another process took meanwhile is left alone."""
        self._stop.set()
        if self._beats is not None:
            self._beats.join()
        if self._is_ours():
            self.path.unlink(missing_ok=True)

    def check(self) -> None:
        """Raise LockLostError if another process has taken the lock."""
        if self._lost:
            raise LockLostError(
                f"{self.path}: another process took this run, since this one was stopped for "
                f"more than {_SECONDS_UNTIL_STALE:.0f} s; it goes on there"
            )

    def holder(self) -> str:
        """Return who holds the lock, ``"host, process 123"``; empty if nobody does."""
        owner = self._read()
        if owner is None:
            return ""
        return f"{owner.get('host', '?')}, process {owner.get('pid', '?')}"

    def is_stale(self) -> bool:
        """Whether the lock's process is gone or gives no sign of life."""
        owner = self._read()
        if owner is None:
            return False
        if owner.get("machine") == _machine() and isinstance(owner.get("pid"), int):
            return _process_start(owner["pid"]) != owner.get("started")
        return self._age() > _SECONDS_UNTIL_STALE

    def __enter__(self) -> RunLock:
        if not self.acquire():
            raise BlockingIOError(f"{self.path}: held by {self.holder()}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()

    def _create(self) -> bool:
        try:
            descriptor = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            return False
        with os.fdopen(descriptor, "w") as file:
            file.write(self._text())
        return True

    def _take_over(self) -> bool:
        """Replace a stale lock. A second file keeps two processes from doing so at once."""
        if not self.is_stale():
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
            if not self.is_stale():
                return False
            aside = self.path.with_name(f"{self.path.name}.{self.token}.part")
            aside.write_text(self._text())
            os.replace(aside, self.path)
            return True
        finally:
            guard.unlink(missing_ok=True)

    def _text(self) -> str:
        owner = {
            "host": platform.node(),
            "machine": _machine(),
            "pid": os.getpid(),
            "started": _process_start(os.getpid()),
            "token": self.token,
        }
        return json.dumps(owner, sort_keys=True) + "\n"

    def _read(self) -> dict[str, Any] | None:
        """Return the owner; None without a lock, and nothing of one that is being written."""
        try:
            owner = json.loads(self.path.read_text() or "{}")
        except FileNotFoundError:
            return None
        except ValueError:
            return {}
        return owner if isinstance(owner, dict) else {}

    def _is_ours(self) -> bool:
        owner = self._read()
        return owner is not None and owner.get("token") == self.token

    def _age(self, path: Path | None = None) -> float:
        """Return the seconds since a file was touched, by the clock of its file system."""
        now = self.path.with_name(f".{self.path.name}.{self.token}.now")
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


def _machine() -> str:
    """Return what two processes share that see each other's process numbers."""
    parts = [platform.node()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def _process_start(pid: int) -> str:
    """Return when a process started, to tell it from a later one of its number; empty if gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[19]
    except OSError:
        if Path("/proc/self/stat").exists():
            return ""
    return "running" if _is_running(pid) else ""


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
