"""``pmt scheme`` as a program."""

import json

import pytest
from cli_files import write_data, write_model

import pmt
from pmt.baselines.backprop.scheme import UpdateScheme
from pmt.baselines.sparse_update.contribution import scheme_memory
from pmt.cli import main

pytestmark = pytest.mark.usefixtures("wide_terminal")


@pytest.fixture
def command(tmp_path):
    model, data = write_model(tmp_path), write_data(tmp_path)
    count = len(pmt.datasets.load(data, split="train"))
    out = ["--out", str(tmp_path / "scheme.json"), "--images", str(count)]
    held_out = ["--held-out", str(count // 3), "--threads", "1"]
    return ["scheme", str(model), "--data", str(data), *out, *held_out]


def written(tmp_path) -> UpdateScheme:
    model = pmt.load(write_model(tmp_path))
    return UpdateScheme.load(tmp_path / "scheme.json", model)


def test_a_scheme_of_tinytrain_has_a_profile(tmp_path, command, capsys):
    pytest.importorskip("torch")
    choice = ["--method", "tinytrain", "--memory", "1K", "--backward-macs", "0.6"]
    assert main([*command, *choice]) == 0
    assert "bytes of 1,024" in capsys.readouterr().out
    method = ["--method", "tinytrain", "--scheme", str(tmp_path / "scheme.json")]
    assert main(["profile", command[1], *method, "--json", "-"]) == 0
    (profile,) = json.loads(capsys.readouterr().out)["profiles"]
    assert len(profile["layers"]) == len(written(tmp_path).layers)


def test_by_contribution_with_a_cache(tmp_path, command, capsys):
    pytest.importorskip("torch")
    cache = tmp_path / "cache.json"
    choice = ["--method", "mcutrain", "--stride", "3", "--batch", "2", "--cache", str(cache)]
    assert main([*command, *choice, "--memory", "1K"]) == 0
    # The head; biases of the last 3 and 5 layers; 4 ratios of each layer, 2 of the image's.
    assert len(json.loads(cache.read_text())["accuracies"]) == 1 + 2 + 4 * 4 + 2
    memory = [scheme_memory(pmt.load(write_model(tmp_path)), written(tmp_path)).total]
    assert main([*command, *choice, "--memory", "200K"]) == 0
    memory.append(scheme_memory(pmt.load(write_model(tmp_path)), written(tmp_path)).total)
    assert memory[0] <= 1024
    assert memory[0] <= memory[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "adam"], "--method 'adam' is unknown; choose one of mcutrain, tinytrain"),
        (["--method", "mcutrain", "--memory", "much"], "--memory='much' must be a number of bytes"),
        (["--method", "mcutrain", "--held-out", "0"], "--held-out 0: a choice needs held-out"),
        (["--method", "tinytrain", "--epochs", "1"], "--epochs is an option of mcutrain: leave it"),
        (["--method", "mcutrain", "--inspect", "2"], "--inspect is an option of tinytrain: leave"),
        (["--method", "tinytrain", "--backward-macs", "2"], "--backward-macs=2.0 must be above 0"),
    ],
)
def test_errors_are_one_line(command, capsys, arguments, message):
    assert main([*command, *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
