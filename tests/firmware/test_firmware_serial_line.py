"""`make verify` reads a board's serial line until the board says how it ended."""

import os
import tty
from pathlib import Path

import pytest
from firmware_tools import make, small_export
from required import need_tools

EQUAL = """STM32F746G-DISCO: 216 MHz
verify: outputs of ops: 26 equal
verify: losses, hits, changes: 8 equal
verify: ok (8 steps, 3 layers, 26 activations)
exit: 0
"""
DIFFERENT = """verify: outputs of ops: 25 of 26 equal
verify: first difference: op 3
exit: 1
"""
FAULT = """verify: outputs of ops: 26 equal
error: memory management fault (exception 4, pc 00000000)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    need_tools("make", "stty", "awk", packages="make coreutils mawk")
    out: Path = tmp_path_factory.mktemp("board") / "fw"
    small_export(out, target="stm32f746g-disco")
    # The line is read by make alone: no compiler is needed.
    (out / "build").mkdir()
    (out / "build" / "fw.elf").touch()
    return out


@pytest.mark.parametrize(
    ("log", "succeeds"), [(EQUAL, True), (DIFFERENT, False), (FAULT, False), ("exit: 0\n", False)]
)
def test_the_verdict_of_a_board_is_that_of_make(folder, log, succeeds):
    board, computer = os.openpty()
    try:
        tty.setraw(computer)
        os.write(board, log.replace("\n", "\r\n").encode())
        run = make(folder, "-o", "build/fw.elf", "verify", f"PORT={os.ttyname(computer)}")
    finally:
        os.close(board)
        os.close(computer)
    assert (run.returncode == 0) == succeeds, run.stdout
    assert log in run.stdout


def test_a_line_that_falls_silent_is_no_success(folder):
    board, computer = os.openpty()
    try:
        tty.setraw(computer)
        os.write(board, EQUAL.split("verify: ok")[0].encode())
        port = os.ttyname(computer)
        run = make(folder, "-o", "build/fw.elf", "verify", f"PORT={port}", "TIMEOUT=2")
    finally:
        os.close(board)
        os.close(computer)
    assert run.returncode != 0
    assert "verify: losses, hits, changes: 8 equal" in run.stdout
