"""SIGTERM ends a command as Ctrl-C does, where nobody else handles it."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from pmt.cli.termination import termination_interrupts


@pytest.fixture(autouse=True)
def handler():
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


def test_it_interrupts_and_the_handler_is_put_back():
    with pytest.raises(KeyboardInterrupt), termination_interrupts():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize("other", [signal.SIG_IGN, lambda number, frame: None])
def test_another_handler_stays(other):
    signal.signal(signal.SIGTERM, other)
    with termination_interrupts():
        assert signal.getsignal(signal.SIGTERM) is other
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is other


def test_other_threads_change_nothing():
    seen = []

    def enter():
        with termination_interrupts():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [signal.SIG_DFL]
