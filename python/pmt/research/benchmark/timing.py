"""Medians of repeated measurements, taken in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

__all__ = ["median_seconds", "take_turns"]

Name = TypeVar("Name", bound=Hashable)

# Long against the clock, short enough to take turns often.
_SHORTEST = 0.02
# Threads of the function before may still spin, and its data owns the caches.
_WARM_UP = 0.005


def median_seconds(function: Callable[[], object], *, repeat: int) -> float:
    """Return the median time of a call."""
    return take_turns({"": function}, repeat=repeat)[""]


def take_turns(
    functions: Mapping[Name, Callable[[], object]], *, repeat: int, shortest: float = _SHORTEST
) -> dict[Name, float]:
    """Time functions in turns, so that a slow moment of the machine meets all of them.

    Parameters
    ----------
    functions : mapping of names to callables
        What to time. Each is called once before, to warm up.
    repeat : int
        Measurements of each.
    shortest : float
        Seconds that a measurement takes at least; a fast function is called many times for it.

    Returns
    -------
    dict
        Median seconds of a call, by name.
    """
    calls = {name: _calls(function, shortest) for name, function in functions.items()}
    seconds: dict[Name, list[float]] = {name: [] for name in functions}
    for _ in range(repeat):
        for name, function in functions.items():
            if calls[name] > 1:
                _warm_up(function)
            seconds[name].append(_seconds(function, calls[name]))
    return {name: statistics.median(values) for name, values in seconds.items()}


def _calls(function: Callable[[], object], shortest: float) -> int:
    function()
    return max(1, round(shortest / max(_seconds(function, 1), 1e-7)))


def _warm_up(function: Callable[[], object]) -> None:
    end = time.perf_counter() + _WARM_UP
    while time.perf_counter() < end:
        function()


def _seconds(function: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls
