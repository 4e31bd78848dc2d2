from __future__ import annotations

import io
import json
import sys
import types
from pathlib import Path

import pytest
from cli_files import GOLDEN, check_golden
from install_hints import install_hint

from pmt.cli import main
from pmt.firmware.monitor import TrainingLog

# Log of `make qemu`, cut off and gone on with by `make resume`; one line has lost characters.
LOG = GOLDEN / "monitor_log.txt"


def test_the_output_is_the_golden_one(capsys):
    assert main(["monitor", "--file", str(LOG)]) == 0
    check_golden("monitor.txt", capsys.readouterr().out)


def test_a_pipe_is_read_like_a_file(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(LOG.read_text()))
    assert main(["monitor", "-"]) == 0
    check_golden("monitor.txt", capsys.readouterr().out)


def test_the_figures(tmp_path):
    assert main(["monitor", "--file", str(LOG), "--json", str(tmp_path / "log.json")]) == 0
    figures = json.loads((tmp_path / "log.json").read_text())
    assert figures["steps"][3] == {
        "step": 3,
        "loss": 1.2797,
        "accuracy": 0.333,
        "changed": 274,
        "milliseconds": 1440,
        "left": 3,
    }
    assert [step["step"] for step in figures["steps"]] == [0, 1, 2, 3, 5, 6]
    assert (figures["total"], figures["checkpoints"], figures["resumed"]) == (7, 3, [4])
    assert figures["memory"]["stack"] == {"used": 2612, "bytes": 8192}
    assert (figures["retries"], figures["unreadable"], figures["equal"]) == (2, 1, True)


def log_of(*lines: str) -> TrainingLog:
    log = TrainingLog()
    for line in lines:
        log.read(line)
    return log


def step(index: int, left: int, milliseconds: int = 500) -> str:
    return (
        f"step {index}: loss 1.2500, accuracy 0.500, 12 weights changed, {milliseconds} ms, "
        f"{left} to go\r\n"
    )


def test_the_time_left_is_that_of_the_last_ten_steps():
    log = log_of(step(0, 20, 90000), *(step(i, 20 - i) for i in range(1, 11)))
    assert log.seconds_left == 5.0
    assert log_of().seconds_left is None


def test_a_monitor_that_comes_late_knows_the_number_of_steps():
    log = log_of("uracy 0.500, 12 weights changed, 500 ms, 61 to go", step(39, 60))
    assert (log.total, log.unreadable) == (100, 0)
    assert log.read(step(40, 59, 100)) == (
        "     41/100  loss 1.2500 (mean 1.2500)  accuracy 0.500 (mean 0.500)"
        "       12 changed  0.10 s  0:18 left"
    )


def test_targets_have_no_accuracy():
    log = TrainingLog()
    shown = log.read("step 0: loss 1024.2500, 12 weights changed, 500 ms, 9 to go")
    assert shown == (
        "       1/10  loss 1024.2500 (mean 1024.2500)       12 changed  0.50 s  0:04 left"
    )
    assert log.accuracy is None
    assert "accuracy" not in log.summary()


def test_long_times_have_hours():
    assert log_of().read(step(0, 3600, 2000)).endswith("2.00 s  2:00:00 left")


@pytest.mark.parametrize("line", ["step 3: loss 1.25", "checkpoint 3: 4 st", "arena: 33 of bytes"])
def test_a_line_that_lost_characters_is_no_figure(line):
    log = TrainingLog()
    assert log.read(line) == f"{line}  [unreadable]"
    assert log.summary().splitlines()[-2] == (
        "errors       1 lines unreadable: the connection loses characters"
    )


def test_an_error_and_a_difference_are_failures(tmp_path, capsys):
    path = tmp_path / "log"
    path.write_text(
        "model: 8 ops, 2864 bytes in flash\n"
        "error: card: block 40 cannot be read: the card does not answer any more (4 tries)\n"
        "verify: card: block 40 cannot be read: the card does not answer any more (4 tries)\n"
    )
    assert main(["monitor", "--file", str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    text = "card: block 40 cannot be read: the card does not answer any more (4 tries)"
    assert lines[-2:] == [f"errors       {text}", f"verify       {text}"]


def test_a_log_that_ends_early_is_no_success(tmp_path, capsys):
    (tmp_path / "log").write_text(step(0, 4))
    assert main(["monitor", "--file", str(tmp_path / "log")]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "verify       no verdict: the log ends before it"


def test_a_start_after_the_verdict_is_a_run_of_its_own():
    log = log_of("verify: ok (1 steps, 2 layers, 0 activations)", "model: 8 ops, 9 bytes in flash")
    assert log.verdict is None


class Port:
    """Stands for pyserial's: a board that says more after its verdict, and never hangs up."""

    def __init__(self, name: str, baud: int) -> None:
        assert (name, baud) == ("/dev/ttyACM0", 9600)
        self.lines = [b"\xff\xfe\r\n", *LOG.read_bytes().splitlines(keepends=True)]
        self.closed = False

    def __enter__(self) -> Port:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def readline(self) -> bytes:
        assert self.lines, "read beyond the verdict"
        return self.lines.pop(0)


def test_a_port_is_followed_to_the_verdict(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "serial", types.SimpleNamespace(Serial=Port))
    assert main(["monitor", "--port", "/dev/ttyACM0", "--baud", "9600"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("\ufffd\ufffd\n")
    assert out.split("\n", 1)[1].splitlines()[-1] == (
        "verify       ok (3 steps after 4, 6 layers, 16 activations)"
    )


def test_a_port_needs_pyserial(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "serial", None)
    assert main(["monitor", "--port", "/dev/ttyACM0"]) == 2
    assert capsys.readouterr().err == (
        f"pmt: error: --port needs pyserial: {install_hint('monitor')}\n"
    )


def test_a_source_is_needed(capsys):
    assert main(["monitor"]) == 2
    assert "one of the arguments --port --file - is required" in capsys.readouterr().err


def test_a_missing_log(capsys, tmp_path):
    assert main(["monitor", "--file", str(tmp_path / "none")]) == 2
    none = tmp_path / "none"
    assert capsys.readouterr().err == f"pmt: error: --file {none}: No such file or directory\n"


def test_the_documents_show_what_is_printed():
    text = (Path(__file__).parents[2] / "docs" / "guides" / "card.md").read_text()
    log = TrainingLog()
    shown = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    for line in shown:
        log.read(line)
    assert (log.total, log.resumed, log.checkpoints, log.retries) == (100, [40], 1, 2)
    assert log.unreadable == 0
