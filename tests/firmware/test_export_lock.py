"""``pmt.lock``: an export can be made again, byte for byte."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from cli_files import write_data, write_model
from firmware_tools import TARGET, random_dataset, small_export
from networks import residual_network

import pmt
from pmt.cli import main
from pmt.firmware.export import read_lock
from pmt.firmware.export.folder import inputs_of
from pmt.firmware.export.task import make_task

SMALL = ["--steps", "2", "--batch", "4", "--queries", "6", "--layers", "B3,head"]
NOISE = ["--corruption", "gaussian_noise", "--severity", "2", "--limit", "40"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with model.pmt, data/ and the export fw/."""
    folder = tmp_path_factory.mktemp("lock")
    model, data = write_model(folder), write_data(folder)
    command = ["export", str(model), "--data", str(data), "--target", TARGET, *SMALL, *NOISE]
    assert main([*command, "--ram", "256K", "--out", str(folder / "fw")]) == 0
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_folder_is_made_again_byte_for_byte(made, tmp_path):
    assert main(["export", "--from", str(made / "fw/pmt.lock"), "--out", str(tmp_path / "b")]) == 0
    first, second = contents(made / "fw"), contents(tmp_path / "b")
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []
    assert len(first) > 80


def test_a_run_is_made_again(tmp_path):
    model, data = write_model(tmp_path), write_data(tmp_path)
    run = tmp_path / "run"
    training = ["--layers", "B2", "--queries", "4", "--batch", "5", "--epochs", "1"]
    diverse = ["--loss", "entropy", "--diversity", "0.5"]
    assert (
        main(["train", str(model), "--data", str(data), "--out", str(run), *training, *diverse])
        == 0
    )
    command = ["export", str(run), "--target", TARGET, "--steps", "2"]
    assert main([*command, "--out", str(tmp_path / "a")]) == 0
    lock = str(tmp_path / "a" / "pmt.lock")
    assert main(["export", "--from", lock, "--out", str(tmp_path / "b")]) == 0
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_the_lock_says_what_was_exported(made):
    lock = json.loads((made / "fw" / "pmt.lock").read_text())
    assert (lock["version"], lock["pmt"]) == (1, pmt.__version__)
    arguments = lock["arguments"]
    assert arguments["target"] == TARGET
    assert [arguments[name] for name in ("steps", "limit", "severity", "ram")] == [2, 40, 2, "256K"]
    assert arguments["layers"] == "B3,head"
    assert not {"out", "force", "json", "lock", "argument_names"} & arguments.keys()
    assert sorted(lock["inputs"]) == ["data", "model", "optimizer_state", "training"]
    assert {"card.img", "Makefile", "core/train/trainer.hpp", "export.json"} <= lock["files"].keys()
    assert not any(name.startswith("app/") for name in lock["files"])


def test_inputs_may_be_elsewhere(made, tmp_path):
    model = write_model(tmp_path)
    data = shutil.copytree(made / "data", tmp_path / "images")
    lock = ["--from", str(made / "fw" / "pmt.lock"), "--out", str(tmp_path / "b")]
    assert main(["export", str(model), "--data", str(data), *lock]) == 0
    assert contents(made / "fw") == contents(tmp_path / "b")


def refused(arguments: list[str], out: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["export", *arguments, "--out", str(out)]) == 2
    assert not out.exists()
    return capsys.readouterr().err


def test_another_model_is_named(made, tmp_path, capsys):
    residual_network(seed=8).save(tmp_path / "other.pmt")
    lock = ["--from", str(made / "fw" / "pmt.lock")]
    error = refused([str(tmp_path / "other.pmt"), *lock], tmp_path / "b", capsys)
    locked = read_lock(made / "fw" / "pmt.lock").inputs["model"][:12]
    assert error.startswith("pmt: error: pmt.lock: the model differs: SHA-256 ")
    assert error.endswith(
        f"locked is {locked}...; give the model that it was exported from, as MODEL\n"
    )


def test_other_images_are_named(made, tmp_path, capsys):
    data = shutil.copytree(made / "data", tmp_path / "data")
    with np.load(data / "train.npz") as arrays:
        changed = dict(arrays)
    name = next(name for name, array in changed.items() if array.ndim >= 3)
    changed[name] = 255 - changed[name]
    np.savez(data / "train.npz", **changed)
    lock = ["--from", str(made / "fw" / "pmt.lock")]
    error = refused(["--data", str(data), *lock], tmp_path / "b", capsys)
    assert "pmt.lock: the data differs: SHA-256 " in error
    assert error.endswith("give the images that it was exported with, by --data DIR\n")


def changed_lock(made: Path, path: Path, **changes: object) -> Path:
    content = json.loads((made / "fw" / "pmt.lock").read_text())
    path.write_text(json.dumps({**content, **changes}))
    return path


def test_a_file_that_would_differ_is_named(made, tmp_path, capsys):
    files = read_lock(made / "fw" / "pmt.lock").files
    other = {**files, "core/zo/layer.cpp": "0" * 64, "core/gone.cpp": "0" * 64}
    lock = changed_lock(made, tmp_path / "pmt.lock", files=other, pmt="0.0.9")
    error = refused(["--from", str(lock)], tmp_path / "b", capsys)
    assert error == (
        "pmt: error: pmt.lock: core/gone.cpp, core/zo/layer.cpp would differ: the folder was "
        f"exported by pmt 0.0.9, this is pmt {pmt.__version__}; install that version, or export "
        "without --from\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["pmt.lock"]


def test_other_options_are_refused(made, tmp_path, capsys):
    lock = ["--from", str(made / "fw" / "pmt.lock"), "--queries", "7"]
    error = refused(lock, tmp_path / "b", capsys)
    assert error.startswith(
        "pmt: error: --queries cannot be given with --from, which takes it from"
    )


def test_other_steps_than_a_card_holds_are_refused(made, tmp_path, capsys):
    arguments = json.loads((made / "fw" / "pmt.lock").read_text())["arguments"]
    lock = changed_lock(made, tmp_path / "pmt.lock", arguments={**arguments, "steps": 2**63})
    error = refused(["--from", str(lock)], tmp_path / "b", capsys)
    assert error == (
        "pmt: error: steps=9223372036854775808 must be a whole number of steps, 1..100000; a "
        "longer training is exported again from where the board has come\n"
    )


@pytest.mark.parametrize(
    "change", [{"mu_weight": 2}, {"rounding": "nearest"}, {"pairs": "antithetic"}]
)
def test_the_lock_knows_every_option(change):
    """Also those that leave steps, layers and their settings as they are."""
    options = pmt.preset("default", batch=3, queries=4, preparation="align")
    first, other = (
        make_task(
            residual_network(),
            dataset=random_dataset(residual_network(), 9),
            options=chosen,
            steps=2,
        )
        for chosen in (options, options.replace(**change))
    )
    assert (first.steps, first.layers, first.batch) == (other.steps, other.layers, other.batch)
    different = {name for name, hash in inputs_of(first).items() if hash != inputs_of(other)[name]}
    assert different == {"training"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            "is not valid JSON: Expecting value: line 1 column 1 (char 0); "
            "give a pmt.lock of `pmt export`",
        ),
        (
            "[" * 100_000,
            "is not valid JSON: it is nested more than 64 deep; give a pmt.lock of `pmt export`",
        ),
        (
            '{"version": 1, "pmt": "0.1.0", "arguments": [1], "inputs": {}, "files": {}}',
            "this is not a pmt.lock of `pmt export`",
        ),
        (
            '{"version": 1, "pmt": "", "arguments": null, "inputs": {}, "files": []}',
            "this is not a pmt.lock of `pmt export`",
        ),
        ("[]", "this is not a pmt.lock of `pmt export`"),
        ('{"version": 1}', "this is not a pmt.lock of `pmt export`"),
    ],
)
def test_what_is_no_lock(tmp_path, text, message, capsys):
    (tmp_path / "pmt.lock").write_text(text)
    error = refused(["--from", str(tmp_path / "pmt.lock")], tmp_path / "b", capsys)
    assert error.startswith(f"pmt: error: {tmp_path / 'pmt.lock'}: {message}")


def test_a_lock_of_a_later_version(made, tmp_path, capsys):
    lock = changed_lock(made, tmp_path / "pmt.lock", version=2, pmt="9.0")
    error = refused(["--from", str(lock)], tmp_path / "b", capsys)
    assert "the lock has version 2, this pmt reads 1; it was written by pmt 9.0" in error


@pytest.mark.parametrize(
    ("arguments", "message"), [([], "MODEL is missing"), (["cifar10_small"], "--target is missing")]
)
def test_without_a_lock_everything_is_needed(tmp_path, arguments, message, capsys):
    error = refused(arguments, tmp_path / "b", capsys)
    assert error == f"pmt: error: {message}; see `pmt export --help`\n"


def test_python_makes_an_export_again(tmp_path, capsys):
    small_export(tmp_path / "a")
    lock = read_lock(tmp_path / "a" / "pmt.lock")
    assert lock.arguments is None
    small_export(tmp_path / "b", lock=lock)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    with pytest.raises(ValueError, match="the training differs: SHA-256"):
        small_export(tmp_path / "c", lock=lock, steps=3)
    error = refused(["--from", str(tmp_path / "a" / "pmt.lock")], tmp_path / "d", capsys)
    assert "has no arguments of the command line" in error
    assert "else call export(..., lock=read_lock(path)) of pmt.firmware.export" in error
