"""The machine that a benchmark ran on."""

from __future__ import annotations

import datetime
import platform
from dataclasses import dataclass
from pathlib import Path

from pmt import _core

__all__ = ["Machine", "processor"]


@dataclass(frozen=True)
class Machine:
    """What a figure depends on.

    ``peak_instruction`` is the dot product of the loop that measured the peak, ``peak_gmacs`` its
    10^9 multiply-accumulates a second, by number of threads, ``one_thread_gmacs`` on one thread.
    """

    processor: str
    kernels: str
    threads: int
    peak_instruction: str
    peak_gmacs: dict[int, float]
    one_thread_gmacs: float
    pmt: str
    date: str

    @classmethod
    def measured(cls, threads: tuple[int, ...]) -> Machine:
        """Look at this machine, and measure its peak with these numbers of threads."""
        peaks = {count: _core.peak(count) for count in dict.fromkeys((1, *threads))}
        return cls(
            processor=processor(),
            kernels=_core.kernels(),
            threads=_core.threads(),
            peak_instruction=peaks[1][0],
            peak_gmacs={count: peaks[count][1] for count in threads},
            one_thread_gmacs=peaks[1][1],
            pmt=_core.__version__,
            date=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        )


def processor() -> str:
    """Return the processor's name, as far as the system tells."""
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine() or "unknown"
