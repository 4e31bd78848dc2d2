"""Medians of repeated measurements, and the machine they were made on."""

from __future__ import annotations

import datetime
import platform
import statistics
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pmt import _core

Name = TypeVar("Name", bound=Hashable)

# Long against the clock, short enough to take turns often.
_SHORTEST = 0.02
# Threads of the function before may still spin, and its data owns the caches.
_WARM_UP = 0.005


@dataclass(frozen=True)
class Machine:
    """All that a figure depends on but the network.

    ``peak_instruction`` is the dot product of the loop that measured the peak, ``peak_gmacs`` its
    10^9 multiply-accumulates per second, by number of threads, ``one_thread_gmacs`` on one thread.
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
    """Return the processor's name, if the system tells."""
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine() or "unknown"


def take_turns(functions: Mapping[Name, Callable[[], object]], *, repeat: int) -> dict[Name, float]:
    """Return median seconds of a call, by name, timed in turns.

    A slow moment of the machine so meets all functions. Each is called once before, to warm up,
    then measured ``repeat`` times; a fast one is called many times for a measurement.
    """
    calls = {name: _calls(function) for name, function in functions.items()}
    seconds: dict[Name, list[float]] = {name: [] for name in functions}
    for _ in range(repeat):
        for name, function in functions.items():
            if calls[name] > 1:
                _warm_up(function)
            seconds[name].append(_seconds(function, calls[name]))
    return {name: statistics.median(values) for name, values in seconds.items()}


def _calls(function: Callable[[], object]) -> int:
    function()
    return max(1, round(_SHORTEST / max(_seconds(function, 1), 1e-7)))


def _warm_up(function: Callable[[], object]) -> None:
    end = time.perf_counter() + _WARM_UP
    while time.perf_counter() < end:
        function()


def _seconds(function: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls
