"""The processes of this machine: which still run, the threads of this one, and new ones."""

from __future__ import annotations

import multiprocessing
import os
import platform
import subprocess
import zlib
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from pmt._util.checks import checked_integer

__all__ = ["is_running", "machine", "machine_tag", "run_process", "started", "thread_count"]


@cache
def machine() -> str:
    """Return what two processes share that see each other's numbers: host, boot, container."""
    parts = [platform.node()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def machine_tag() -> str:
    """Return :func:`machine` in eight hexadecimal digits, for the names of files."""
    return f"{zlib.crc32(machine().encode()):08x}"


def started(pid: int) -> str:
    """Return when a process started, to tell it from a later one of its number; empty if gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[19]
    except OSError:
        if Path("/proc/self/stat").exists():
            return ""
    return "running" if is_running(pid) else ""


def is_running(pid: int) -> bool:
    """Whether a process of this machine has that number, a zombie included."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def thread_count(requested: int) -> int:
    """Resolve a number of threads, where 0 leaves the choice to pmt.

    That is 1 in a worker of a process pool, which shares the machine with its siblings, unless
    ``OMP_NUM_THREADS`` says how many it has; else 0, all that the core sees. In a process forked
    after several threads were used the core runs on one, whatever is asked for.
    """
    threads = checked_integer("threads", requested)
    if threads < 0:
        raise ValueError(f"threads must be 0 (all) or more; got {threads}")
    in_a_pool = multiprocessing.parent_process() is not None
    if threads == 0 and in_a_pool and not os.environ.get("OMP_NUM_THREADS"):
        return 1
    return threads


def run_process(command: Sequence[str], what: str, remedy: str = "") -> str:
    """Run a command, and return what it writes to standard output.

    Raises
    ------
    OSError
        If it fails: names ``what``, with the last line of standard error, and the remedy.
    """
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode == 0:
        return done.stdout
    last = done.stderr.strip().rpartition("\n")[2] or f"ended with {done.returncode}"
    raise OSError(f"{what}: {last}{remedy and f'; {remedy}'}")
