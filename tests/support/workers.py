"""Hooks for the workers of pytest-xdist: the order of files, and tests that run alone."""

import fcntl
import os
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

HERE = Path(__file__)


def in_a_worker() -> bool:
    return "PYTEST_XDIST_WORKER" in os.environ


class Turns:
    """Locks between workers: many tests at once, or a single one."""

    def __init__(self) -> None:
        # Who waits for the room keeps the door closed: nobody enters before them.
        self._door = os.open(HERE.parent, os.O_RDONLY)
        self._room = os.open(HERE, os.O_RDONLY)
        self._inside = False

    def enter(self, alone: bool) -> None:
        if not self._inside:
            fcntl.flock(self._door, fcntl.LOCK_EX)
            fcntl.flock(self._room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            fcntl.flock(self._door, fcntl.LOCK_UN)
            self._inside = True

    def leave(self) -> None:
        fcntl.flock(self._room, fcntl.LOCK_UN)
        self._inside = False


turns = Turns()


def runs_alone(item: pytest.Item | None) -> bool:
    return item is not None and item.get_closest_marker("alone") is not None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Run a test that is marked `alone` while no other worker runs one."""
    if not in_a_worker():
        return (yield)
    turns.enter(runs_alone(item))
    try:
        return (yield)
    finally:
        if not (runs_alone(item) and runs_alone(nextitem)):
            turns.leave()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files of few, long tests, so that the workers end at about the same time.

    Files with tests that run alone are last: these wait for the tests of the other workers.
    """
    if in_a_worker():
        tests = Counter(item.path for item in items)
        last = {item.path for item in items if runs_alone(item)}
        items.sort(key=lambda item: (item.path in last, tests[item.path], item.path))
