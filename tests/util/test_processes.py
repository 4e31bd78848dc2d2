"""Which processes run."""

import os
import subprocess
import sys
import time

from pmt._util.processes import is_running


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
