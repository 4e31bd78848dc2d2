"""A folder whose disk fails at a change of our choice, and processes that meet the failure."""

import ctypes
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("failing_disk.c")
KILL, FULL = 1, 2
KILLED = -signal.SIGKILL


@dataclass(frozen=True)
class Fault:
    """A kill at a change, or a disk that is full from it on; `percent` of its bytes are written."""

    kind: int
    at: int
    percent: int = 0


NO_FAULT = Fault(KILL, 1 << 40)


@dataclass(frozen=True)
class Ended:
    """A process that ended: its exit status, -9 if killed; its errors; the changes it made."""

    status: int
    errors: str
    changes: int


def build(folder: Path) -> Path:
    """Compile the library that a process is started with to have failing disks."""
    library = folder / "failing_disk.so"
    command = ["gcc", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, "-o", library, SOURCE, "-ldl"], check=True)
    return library


class Process:
    """A child of this process that runs an action on the disk below a folder.

    It waits until :meth:`start`.
    """

    def __init__(self, folder: Path, action: Callable[[], int], fault: Fault) -> None:
        self._said = folder.with_name(f"{folder.name}.{fault.at}.{id(self)}")
        door, self._door = os.pipe()
        changes, report = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            status = 70
            with suppress(BaseException):
                os.close(self._door)
                os.read(door, 1)
                status = self._run(folder, action, fault, report)
            os._exit(status)
        os.close(door)
        os.close(report)
        self._changes = changes

    def _run(self, folder: Path, action: Callable[[], int], fault: Fault, report: int) -> int:
        said = os.open(self._said, os.O_CREAT | os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(said if stream == 2 else os.open(os.devnull, os.O_WRONLY), stream)
        disk = ctypes.CDLL(None)
        disk.fault_changes.restype = ctypes.c_long
        disk.fault_arm(os.fsencode(folder), fault.kind, ctypes.c_long(fault.at), fault.percent)
        try:
            status = action()
        except BaseException:
            traceback.print_exc()
            status = 71
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(report, b"%d" % disk.fault_changes())
        return status

    def start(self) -> None:
        """Let it run."""
        os.close(self._door)

    def end(self) -> Ended:
        """Wait until it has ended."""
        status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        with open(self._changes, "rb") as report:
            changes = int(report.read() or 0)
        errors = self._said.read_text() if self._said.exists() else ""
        self._said.unlink(missing_ok=True)
        return Ended(status, errors, changes)


def run(folder: Path, action: Callable[[], int], fault: Fault = NO_FAULT) -> Ended:
    """Run an action in a child, on a disk that fails as told; by default it never does."""
    process = Process(folder, action, fault)
    process.start()
    return process.end()
