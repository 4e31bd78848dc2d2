"""Standard streams closed, full or left by their reader; names that would steer a terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from image_sections import with_renamed
from networks import residual_network, smooth_network

import pmt
from pmt._util.printable import printable
from pmt.cli import main

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
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
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
        r"pmt: error: path='a\x1b]0;x\x07\udcff.pmt': there is no such file" + "\n"
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
