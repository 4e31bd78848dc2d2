import json
import re

import numpy as np
import pytest
from cli_files import write_data, write_model
from networks import residual_network

import pmt
from pmt.baselines.backprop.scheme import UpdateScheme
from pmt.baselines.sparse_update.contribution import scheme_memory
from pmt.cli import main

TARGET = ["--target", "qemu-mps2-an500"]


@pytest.fixture
def files(tmp_path):
    return write_model(tmp_path), write_data(tmp_path)


def test_a_model_is_exported_with_the_options_given(files, tmp_path, capsys):
    model, data = files
    firmware = tmp_path / "fw"
    command = ["export", str(model), "--data", str(data), "--out", str(firmware), *TARGET]
    small = ["--steps", "2", "--batch", "4", "--queries", "6", "--layers", "B3,head"]
    assert main([*command, *small, "--preparation", "align", "--json", "-"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["layers"] == ["down", "head"]
    assert [figures[key] for key in ("steps", "batch", "queries")] == [2, 4, 6]
    assert figures["run"] == f"make -C {firmware} qemu"
    assert (firmware / "model" / "model.pmt").read_bytes() == model.read_bytes()


def test_help_shows_the_batch_and_the_queries_that_a_board_gets(files, tmp_path, capsys):
    assert main(["export", "--help-all"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    model, data = files
    command = ["export", str(model), "--data", str(data), "--out", str(tmp_path / "fw"), *TARGET]
    assert main([*command, "--steps", "1", "--preset", "paper", "--json", "-"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert f"images of a step (1..10^6; default: {figures['batch']})" in shown
    queries = "perturbed forwards for each image and layer, 2 or more with --baseline leave_one_out"
    assert f"{queries} (1..4096; default: {figures['queries']})" in shown


def test_a_board_that_selects_a_block(files, tmp_path, capsys):
    model, data = files
    firmware = tmp_path / "fw"
    command = ["export", str(model), "--data", str(data), "--out", str(firmware), *TARGET]
    command += ["--steps", "2", "--batch", "4", "--queries", "6", "--held-out", "10"]
    assert main([*command, "--select", "B1, B2+head"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.match(r"select: B[12](,head)?; losses on 10 held-out samples: B1 \d", lines[1])
    assert any(line.startswith("| - larger candidates | arena |") for line in lines)
    assert '{"B2+head", layers_of_1, 3, {' in (firmware / "model" / "selection.hpp").read_text()
    assert "selection.try_next()" in (firmware / "app" / "main.cpp").read_text()
    assert main(["export", "--from", str(firmware / "pmt.lock"), "--out", str(tmp_path / "b")]) == 0
    card = (tmp_path / "b" / "card.img").read_bytes()
    assert card == (firmware / "card.img").read_bytes()


def test_a_board_gets_pixels_as_the_pc_reads_them(tmp_path, capsys):
    pytest.importorskip("onnx")
    graph = residual_network().to_graph()
    graph.input_mean, graph.input_std = (120.0, 110.0, 100.0), (60.0, 61.0, 62.0)
    network, data = tmp_path / "net.onnx", write_data(tmp_path)
    pmt.Model.from_graph(graph).save(network)
    firmware, again = tmp_path / "fw", tmp_path / "again"
    command = ["export", str(network), "--data", str(data), "--out", str(firmware), *TARGET]
    means = ["--input-mean", "99,98,97", "--input-std", "64"]
    assert main([*command, *means, "--steps", "1", "--batch", "2", "--preparation", "none"]) == 0
    assert main(["export", "--from", str(firmware / "pmt.lock"), "--out", str(again)]) == 0
    assert capsys.readouterr().err == ""
    model = pmt.load(firmware / "model" / "model.pmt")
    assert (model.core.input_mean, model.core.input_std) == ((99.0, 98.0, 97.0), (64.0,) * 3)
    card = (firmware / "card.img").read_bytes()
    assert card == (again / "card.img").read_bytes()
    images = pmt.datasets.load(data).images
    scale, zero = graph.tensors[0].scale, graph.tensors[0].zero_point
    steps = np.rint((images - np.array([99.0, 98.0, 97.0])) / 64 / scale) + zero
    expected = np.clip(steps, -128, 127).astype(np.int8)
    assert sum(image.tobytes() in card for image in expected) == 2  # in one sector


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--held-out", "9"], "--held-out needs --select"),
        (["--select", "B1,B2", "--layers", "B3"], "give no --layers and no --block"),
        (["--select", "B1,B2", "--held-out", "10000"], "--held-out 10000 leaves nothing of"),
    ],
)
def test_what_selects_nothing_is_refused(files, tmp_path, capsys, arguments, message):
    model, data = files
    command = ["export", str(model), "--data", str(data), "--out", str(tmp_path / "fw"), *TARGET]
    assert main([*command, *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "fw").exists()


def test_a_run_is_exported_with_its_own_options_and_images(files, tmp_path, capsys):
    model, data = files
    run = tmp_path / "run"
    options = ["--layers", "B2", "--queries", "4", "--batch", "5", "--epochs", "1"]
    noise = ["--corruption", "gaussian_noise", "--severity", "2", "--limit", "40"]
    assert (
        main(["train", str(model), "--data", str(data), "--out", str(run), *options, *noise]) == 0
    )
    firmware = tmp_path / "fw"
    assert (
        main(["export", str(run), "--out", str(firmware), *TARGET, "--steps", "3", "--batch", "5"])
        == 0
    )
    assert "3 steps of 5 samples, 8 queries, 2 layers" in capsys.readouterr().out
    exported = pmt.load(firmware / "model" / "model.pmt")
    trained = pmt.load(run)
    assert np.array_equal(exported.core.weights(2), trained.core.weights(2))
    steps = json.loads((firmware / "expected.json").read_text())["steps"]
    assert [step["step"] for step in steps] == [6, 7, 8]


def test_a_folder_of_something_else_is_not_overwritten(files, tmp_path, capsys):
    model, data = files
    command = ["export", str(model), "--data", str(data), "--out", str(data), *TARGET]
    assert main([*command, "--batch", "4"]) == 2
    assert capsys.readouterr().err.startswith(
        f"pmt: error: --out='{data}' exists and is not an earlier export"
    )
    assert (data / "train.npz").is_file()


def test_budgets_are_those_given(files, tmp_path, capsys):
    model, data = files
    command = ["export", str(model), "--data", str(data), "--batch", "4", *TARGET]
    out = tmp_path / "fw"
    assert main([*command, "--out", str(out), "--ram", "1M", "--stack", "6K"]) == 0
    written = json.loads((out / "export.json").read_text())
    assert (written["ram_bytes"], written["stack_bytes"]) == (1_048_576, 6_144)
    assert main([*command, "--out", str(tmp_path / "other"), "--stack", "1001"]) == 2
    error = capsys.readouterr().err
    assert "--stack=1001 must be a multiple of 8, at least 1024 bytes" in error


def test_a_method_is_taken_as_a_preset_is(files, tmp_path, capsys):
    model, data = files
    command = ["export", str(model), "--data", str(data), *TARGET, "--out"]
    for name, chosen in (("preset", "paper"), ("method", "paper"), ("method", "bias_only")):
        assert main([*command, str(tmp_path / f"{name}_{chosen}"), f"--{name}", chosen]) == 0
    cards = {path.parent.name: path.read_bytes() for path in tmp_path.glob("*/card.img")}
    assert cards["preset_paper"] == cards["method_paper"] != cards["method_bias_only"]
    capsys.readouterr()
    for options, message in (
        (["--method", "paper", "--preset", "paper"], "--method and --preset exclude each other"),
        (["--method", "bp_int8"], "--method bp_int8, which trains in another way; a board trains"),
        (["--method", "best"], "'best' is unknown"),
    ):
        assert main([*command, str(tmp_path / "none"), *options]) == 2
        assert message in capsys.readouterr().err


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
