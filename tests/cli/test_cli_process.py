"""The command as a process: streams closed, full or left by their reader, names that would steer a
terminal, and the signals that end it."""

import fcntl
import os
import signal
import subprocess
import sys
import termios
import threading
from functools import partial
from pathlib import Path

import pytest
from cli_files import program, write_data, write_model
from image_sections import with_renamed
from networks import residual_network, smooth_network
from test_cli_train import SLOW, steps_done, wait_for_steps

import pmt
from pmt._util.text import printable
from pmt.cli import main
from pmt.cli.program import termination_interrupts

FULL = "pmt: error: standard output: No space left on device\n"
HOSTILE = "d\x1b[31m\n\x9b\u202eX caf\u00e9 \u5c42"
SHOWN = r"d\x1b[31m\n\x9b\u202eX café 层"


def shell(line: str, *, buffered: bool = True) -> tuple[int, str, str]:
    """Run a shell's line in which PMT stands for the program: exit code, output, errors."""
    python = f"'{sys.executable}' {'' if buffered else '-u'} -m pmt"
    done = subprocess.run(
        ["bash", "-c", line.replace("PMT", python)],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONIOENCODING": "utf-8"},
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "net.pmt"
    residual_network().save(path)
    return str(path)


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize(
    ("line", "code", "error"),
    [
        ("PMT info MODEL >&-", 0, ""),
        ("PMT info MODEL <&- >&- 2>&-", 0, ""),
        ("PMT --help >&-", 0, ""),
        ("PMT info MODEL 2>&-", 0, ""),
        ("PMT info nix.pmt 2>&-", 2, ""),
        ("PMT info nix.pmt 2>/dev/full", 2, ""),
        (
            "PMT info MODEL --json - >&-",
            2,
            "pmt: error: --json -: standard output is closed; give a file\n",
        ),
        ("PMT info MODEL >/dev/full", 2, FULL),
        ("PMT info MODEL --json - >/dev/full 2>/dev/null", 2, ""),
        ("PMT --help >/dev/full", 2, FULL),
        ("PMT --version >/dev/full", 2, FULL),
        ("PMT info MODEL | true; exit ${PIPESTATUS[0]}", 141, ""),
        ("PMT info --help | true; exit ${PIPESTATUS[0]}", 141, ""),
    ],
)
def test_a_command_ends_with_its_own_exit_code(model, line, code, error, buffered):
    found, _, errors = shell(line.replace("MODEL", f"'{model}'"), buffered=buffered)
    assert (found, errors) == (code, error)


def test_a_finished_training_whose_output_is_closed_ends_with_0(tmp_path):
    out = tmp_path / "run"
    options = "--data bundled --limit 50 --valid-limit 50 --epochs 1 --queries 2 --layers head"
    code, text, errors = shell(f"PMT train fashion_mnist_dscnn {options} --out '{out}' >&-")
    assert (code, text, errors) == (0, "", "")
    closed = sorted((path.name, path.read_bytes()) for path in out.glob("*.pmt"))
    assert shell(f"PMT train fashion_mnist_dscnn {options} --out '{out}2'")[0] == 0
    assert closed == sorted((p.name, p.read_bytes()) for p in Path(f"{out}2").glob("*.pmt"))


def test_names_of_layers_and_models_are_shown_escaped(tmp_path, capsys):
    path = tmp_path / "net.pmt"
    path.write_bytes(with_renamed(smooth_network(), "conv", HOSTILE.encode()))
    assert main(["info", str(path)]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[1].split("  ")[1].startswith(SHOWN)
    assert len(table[0]) == len(table[0].rstrip())
    assert table[2].split()[1] == "head"
    graph = smooth_network().to_graph()
    graph.metadata = {"name": HOSTILE}
    assert repr(pmt.Model.from_graph(graph)).startswith(f"<pmt.Model {SHOWN}: 4x4x3")


def test_file_names_and_arguments_are_shown_escaped(capsys):
    assert main(["info", "a\x1b]0;x\x07\udcff.pmt"]) == 2
    assert capsys.readouterr().err == (
        r"pmt: error: MODEL 'a\x1b]0;x\x07\udcff.pmt': there is no such file" + "\n"
    )
    assert main(["info", "a.pmt", "--\x1b[2J"]) == 2
    assert r"--\x1b[2J" in capsys.readouterr().err


def test_characters_that_a_terminal_lacks_stop_nothing(tmp_path):
    path = tmp_path / "net.pmt"
    path.write_bytes(with_renamed(smooth_network(), "conv", "caf\u00e9".encode()))
    code, text, errors = shell(f"PYTHONIOENCODING=ascii PMT info '{path}'")
    assert (code, errors) == (0, "")
    assert r"caf\xe9" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("caf\u00e9 \u5c42 \U0001f600 \u200d ~", "caf\u00e9 \u5c42 \U0001f600 \u200d ~"),
        ("\x00\x07\x1b[0m\x7f\x80\x9f", r"\x00\x07\x1b[0m\x7f\x80\x9f"),
        ("a\tb\r\nc", r"a\tb\r\nc"),
        ("\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069", r"\u061c\u200e\u200f\u2028\u2029"
         r"\u202a\u202e\u2066\u2069"),
        ("\ud800\udcff", r"\ud800\udcff"),
        ("back\\slash", "back\\slash"),
    ],
)  # fmt: skip
def test_printable(text, shown):
    assert printable(text) == shown
    assert printable(text, keep="\t\n") == shown.replace(r"\t", "\t").replace(r"\n", "\n")


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
    assert error == f"pmt: interrupted; continue with: pmt train --resume {run}\n"
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
    assert error == f"pmt: interrupted; continue with: pmt train --resume {run}\n"


@pytest.mark.parametrize("module", ["numpy", "numpy.linalg", "pmt._core", "pmt.cli.show"])
def test_ctrl_c_while_the_command_is_imported_is_one_line(module):
    program = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a test may run without\n"
        "class Pressed:\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Pressed())\n"
        "from pmt.__main__ import run\n"
        "sys.exit(run())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "pmt: interrupted\n")
