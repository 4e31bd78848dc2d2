"""Which processes run, and signals that wait until a short piece of work is whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from pmt._util.processes import deferred_signals, is_running

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


def test_a_process_that_ended_runs_no_more():
    child = subprocess.Popen([sys.executable, "-c", "pass"], stdout=subprocess.PIPE)
    assert child.stdout.read() == b""
    deadline = time.monotonic() + 30
    while is_running(child.pid):  # until it is a zombie
        assert time.monotonic() < deadline
        time.sleep(0.01)
    child.wait()
    child.stdout.close()
    assert not is_running(child.pid)
    assert is_running(os.getpid())
