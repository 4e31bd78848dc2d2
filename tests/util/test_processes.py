"""Commands that pmt runs: what they print, and why they failed."""

import sys

import pytest

from pmt._util.processes import run_process


def test_the_output_of_a_command_is_returned():
    assert run_process([sys.executable, "-c", "print(3)"], "a count") == "3\n"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("raise SystemExit('first\\nno such image')", "no such image"),
        ("raise SystemExit(7)", "ended with 7"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "ended with -9"),
    ],
)
def test_a_failure_says_what_failed_and_why(script, said):
    with pytest.raises(OSError, match=r"^a count: ") as error:
        run_process([sys.executable, "-c", script], "a count", "count again")
    assert str(error.value) == f"a count: {said}; count again"
    with pytest.raises(OSError, match=f"^a count: {said}$"):
        run_process([sys.executable, "-c", script], "a count")
