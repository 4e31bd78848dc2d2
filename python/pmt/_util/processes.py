"""The processes of this machine: which still run, and this one's threads."""

import multiprocessing
import os
import platform
import threading
import warnings
import zlib
from contextlib import suppress
from functools import cache
from pathlib import Path

from pmt import _core
from pmt._util.checks import checked_integer

_MOST = 1024  # threads
_MOST_TRIED = 256


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
    after several threads were used the core runs on one, whatever is asked for. Where the system
    starts no more threads, as in a container that limits processes, it is 1, with a warning:
    OpenMP would end the process.
    """
    threads = checked_integer("threads", requested)
    if threads < 0:
        raise ValueError(f"threads must be 0 (all) or more; got {threads}")
    if threads > _MOST:
        raise ValueError(f"threads={threads} must be at most {_MOST}; 0 takes all")
    in_a_pool = multiprocessing.parent_process() is not None
    if threads == 0 and in_a_pool and not os.environ.get("OMP_NUM_THREADS"):
        return 1
    return threads if _can_start(min(_core.threads(threads), _MOST_TRIED) - 1) else 1


@cache
def _can_start(threads: int) -> bool:
    """Try whether ``count`` more threads start, and warn where they do not."""
    end = threading.Event()
    started: list[threading.Thread] = []
    try:
        for _ in range(threads):
            started.append(threading.Thread(target=end.wait, daemon=True))
            started[-1].start()
    except RuntimeError:
        started.pop()
        warnings.warn(
            f"only {len(started)} of {threads} further threads start: pmt works on one; allow the "
            "process more, or ask for fewer with threads=N or OMP_NUM_THREADS=N",
            stacklevel=3,
        )
        return False
    finally:
        end.set()
        for thread in started:
            thread.join()
    return True
