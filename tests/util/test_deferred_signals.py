"""Signals that wait until a short piece of work is whole."""

from __future__ import annotations

import os
import random
import signal
import threading
import time

import pytest

from pmt._util.deferred_signals import deferred_signals

ALL = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def handlers():
    before = {number: signal.getsignal(number) for number in ALL}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", ALL)
def test_a_handler_runs_when_the_work_is_whole(number):
    seen = []

    def handle(number, frame):
        seen.append((number, done))

    signal.signal(number, handle)
    done = False
    with deferred_signals():
        os.kill(os.getpid(), number)
        done = True
    assert seen == [(number, True)]
    assert signal.getsignal(number) is handle


def test_ctrl_c_comes_through():
    done = []

    def work():
        with deferred_signals():
            os.kill(os.getpid(), signal.SIGINT)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [True]


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_signals_without_a_handler_stay_as_they_are(handler):
    signal.signal(signal.SIGHUP, handler)
    with deferred_signals():
        assert signal.getsignal(signal.SIGHUP) is handler


def test_other_threads_change_nothing():
    seen = []

    def enter():
        with deferred_signals():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_a_handler_that_raises_keeps_none_from_running():
    seen = []

    def handle(number, frame):
        seen.append(number)

    signal.signal(signal.SIGTERM, handle)

    def work():
        with deferred_signals():
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
                os.kill(os.getpid(), number)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert seen == [signal.SIGTERM]


def test_a_deferral_inside_of_another_ends_with_it():
    done = []

    def work():
        with deferred_signals():
            with deferred_signals():
                os.kill(os.getpid(), signal.SIGINT)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [True]


def test_handlers_survive_a_storm_of_signals():
    """Handlers that raise come at any line of the deferral, and none of them is lost."""
    seen = dict.fromkeys(ALL, 0)
    raises = False

    def handle(number, frame):
        nonlocal raises
        seen[number] += 1
        if raises:
            raises = False
            raise KeyboardInterrupt

    for number in ALL:
        signal.signal(number, handle)
    storm = threading.Thread(target=_storm, args=(time.monotonic() + 2.0,))
    storm.start()
    begun = done = interrupted = 0
    while storm.is_alive():
        try:
            raises = True
            with deferred_signals():
                begun += 1
                sum(range(30))
                done += 1
            raises = False
        except KeyboardInterrupt:
            interrupted += 1
    assert begun == done > 100
    assert interrupted > 100
    for number in ALL:
        before = seen[number]
        os.kill(os.getpid(), number)
        assert seen[number] == before + 1
    with deferred_signals():
        pass
    assert [signal.getsignal(number) for number in ALL] == [handle] * 3


def _storm(end: float) -> None:
    draw = random.Random(1)
    while time.monotonic() < end:
        os.kill(os.getpid(), draw.choice(ALL))
        time.sleep(draw.random() * 2e-4)
