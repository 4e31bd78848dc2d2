"""The processes of this machine: which still run, and this one's threads."""

from __future__ import annotations

import multiprocessing
import os
import platform
import zlib
from contextlib import suppress
from functools import cache
from pathlib import Path

from pmt._util.checks import checked_integer

__all__ = [
    "is_running",
    "machine_tag",
    "thread_count",
]


@cache
def machine_tag() -> str:
    """Return eight hexadecimal digits that processes share which see each other's numbers.

    They stand for host, boot and container.
    """
    parts = [platform.node()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return f"{zlib.crc32(' '.join(parts).encode()):08x}"


def is_running(pid: int) -> bool:
    """Whether a process of this machine has that number and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        if Path("/proc/self/stat").exists():
            return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # another user's
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
