"""SIGTERM and SIGHUP end a command as Ctrl-C does, where nobody else handles or ignores them."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import termios
import threading
from functools import partial

import pytest
from cli_files import program, write_data, write_model
from test_cli_train import SLOW, steps_done, wait_for_steps

import pmt
from pmt.cli.process import termination_interrupts

SIGNALS = [signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def handlers():
    before = {number: signal.signal(number, signal.SIG_DFL) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_it_interrupts_and_the_handler_is_put_back(number):
    with pytest.raises(KeyboardInterrupt), termination_interrupts():
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) is signal.SIG_DFL


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("other", [signal.SIG_IGN, lambda number, frame: None])
def test_another_handler_stays(number, other):
    signal.signal(number, other)
    with termination_interrupts():
        assert signal.getsignal(number) is other
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) is other


def test_other_threads_change_nothing():
    seen = []

    def enter():
        with termination_interrupts():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [signal.SIG_DFL]


@pytest.fixture
def begin(tmp_path):
    """Start a training of some seconds; return it and its folder after the first step."""
    model, data = write_model(tmp_path), write_data(tmp_path)
    run = tmp_path / "run"
    options = ["--block", "2", "--queries", "6", "--epochs", "4", "--batch", "10"]

    def started(start):
        process = start("train", model, "--data", data, "--out", run, *options, code=SLOW)
        wait_for_steps(process, run, 1)
        return process, run

    return started


def test_a_hangup_leaves_a_checkpoint(begin):
    process, run = begin(program)
    process.send_signal(signal.SIGHUP)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error == f"pmt: interrupted; go on with: pmt train --resume {run}\n"
    assert pmt.RunFolder(run).load_checkpoint()[1] >= 1
    assert not run.with_name("run.lock").exists()


def test_a_terminal_that_is_closed_leaves_a_checkpoint(begin):
    ours, theirs = os.openpty()

    def in_terminal(*arguments, code):
        def take_terminal():
            os.setsid()
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
            signal.signal(signal.SIGHUP, signal.SIG_DFL)

        command = [sys.executable, "-c", code, *map(str, arguments)]
        return subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=take_terminal
        )

    process, run = begin(in_terminal)
    os.close(theirs)
    os.close(ours)
    assert process.wait(60) == 130
    assert pmt.RunFolder(run).load_checkpoint()[1] >= 1
    assert not run.with_name("run.lock").exists()


def test_what_is_ignored_from_the_start_stays_ignored_and_sigterm_ends(begin):
    ignored = (signal.SIGINT, signal.SIGHUP)
    process, run = begin(partial(program, ignored=ignored))
    for number in ignored:
        before = steps_done(run)
        process.send_signal(number)
        wait_for_steps(process, run, before + 2)
    process.terminate()
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error == f"pmt: interrupted; go on with: pmt train --resume {run}\n"
