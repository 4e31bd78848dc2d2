"""``pmt profile`` as a program."""

from __future__ import annotations

import json

import pytest
from cli_files import check_document, check_golden, documented_command, write_model

from pmt.cli import main

PAPER14 = ["profile", "cifar10_mcunet", "--method", "paper", "--layers", "paper14"]


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")


def test_help_says_what_is_counted(capsys):
    assert main(["profile", "--help"]) == 0
    check_golden("help_profile.txt", capsys.readouterr().out)


def test_all_methods_side_by_side(capsys):
    assert main([*PAPER14, "--batch", "1", "--queries", "50", "--against", "all"]) == 0
    check_golden("profile.txt", capsys.readouterr().out)


def test_a_plan_says_where_activations_live(capsys):
    b2 = ["profile", "cifar10_mcunet", "--method", "paper", "--layers", "B2", "--batch", "1"]
    assert main([*b2, "--plan"]) == 0
    check_golden("profile_plan.txt", capsys.readouterr().out)


def test_figures_as_json(capsys):
    assert main([*PAPER14, "--batch", "2", "--queries", "50", "--json", "-"]) == 0
    figures = json.loads(capsys.readouterr().out)
    (profile,) = figures["profiles"]
    assert (profile["weights"], profile["batch"], profile["queries"]) == (177_456, 2, 50)
    work = profile["macs_per_image"]
    head = 1_600
    assert work["forward_macs"] - head * (1 + 50 * 14) == 7_857_858_304
    assert profile["macs_per_step"] == 2 * work["macs"]
    assert profile["forwards_per_step"] == 2 * 50 * 14
    memory = profile["memory"]
    parts = sum(size for part, size in memory.items() if part not in ("sram", "frozen"))
    assert parts == memory["sram"]


def test_the_profile_in_the_documents_is_current(capsys):
    assert main(documented_command("reference/costs.md", "bp_bias_only")) == 0
    check_document("reference/costs.md", "bp_bias_only", capsys.readouterr().out)


def test_a_plot_is_written(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    plot = tmp_path / "memory.svg"
    assert main([*PAPER14, "--against", "bp_int8", "--plot", str(plot)]) == 0
    assert "activation gradients" in plot.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "adam"], "method='adam' is unknown; choose one of paper, default"),
        (["--method", "bp_int8", "--plan"], "--plan: bp_int8 is not trained by the core"),
        (["--method", "mcutrain"], "is for MCUNet's 42 convolutions, this model has 5"),
        (["--method", "tinytrain"], "TinyTrain chooses by the data"),
        (["--method", "mcutrain", "--layers", "B1"], "what is trained follows scheme"),
        (["--method", "mcutrain", "--scheme", "9KB"], "scheme='9KB' is no file and none of 49KB"),
        (["--method", "paper", "--against", "bp_int8,adam"], "method='adam' is unknown"),
    ],
)
def test_errors_are_one_line(tmp_path, capsys, arguments, message):
    assert main(["profile", str(write_model(tmp_path)), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
