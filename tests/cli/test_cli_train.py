import errno
import json
import os
import re
import signal
import time

import pytest
from cli_files import program, same_weights, write_data, write_model

import pmt
from pmt._util.parsing import parse_toml
from pmt.cli import main

OPTIONS = [
    "--corruption", "gaussian_noise", "--severity", "5", "--block", "2", "--queries", "6",
    "--epochs", "2", "--batch", "10", "--learning-rate", "0.2", "--seed", "7",
]  # fmt: skip
# As `pmt`, but a checkpoint after every step and a pause in it: time to be killed in mid-epoch.
SLOW = """
import sys, time
import pmt.train.run.loop
from pmt.cli import main
from pmt.cli.output import EpochLines
pmt.train.run.loop._SECONDS_BETWEEN_CHECKPOINTS = 0.0
fast = EpochLines.after_step
def slow(self, step, record):
    fast(self, step, record)
    time.sleep(0.1)
EpochLines.after_step = slow
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def files(tmp_path):
    return write_model(tmp_path), write_data(tmp_path)


NOTES = [
    "not aligned: the model holds no statistics of clean images; `pmt statistics MODEL --data "
    "CLEAN --out MODEL.pmt` adds them",
    "head not trained alone: it is not among the trained layers",
]


def command(files, out, *more: str) -> list[str]:
    model, data = files
    return ["train", str(model), "--data", str(data), "--out", str(out), *OPTIONS, *more]


def steps_done(run) -> int:
    metrics = pmt.RunFolder(run).read_metrics()
    return sum(record["kind"] == "step" for record in metrics)


def wait_for_steps(process, run, count: int) -> None:
    deadline = time.monotonic() + 60
    while steps_done(run) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_budget_is_told_with_what_it_has_room_for(files, tmp_path, capsys):
    model, data = (str(path) for path in files)
    options = ["--macs", "2e6", "--batch", "2", "--queries", "2", "--layers", "B2"]
    out = ["--preparation", "none", "--no-keep-best", "--out", str(tmp_path / "run")]
    assert main(["train", model, "--data", data, *options, *out]) == 0
    (line,) = re.findall(r"^steps +(.*)$", capsys.readouterr().out, re.MULTILINE)
    assert line == (
        "4 steps of 2 images, 2 queries for each image and layer; all that a budget of 2,000,000 "
        "MACs has room for"
    )


def test_filters_that_no_tflite_holds_are_told_where_the_run_ends(tmp_path, capsys):
    """They are those of the bundled network, which the noise calls for; `pmt align` says so too."""
    model, out = tmp_path / "start.pmt", tmp_path / "run"
    clean = pmt.datasets.bundled("test").take(64).images
    pmt.statistics(pmt.load("fashion_mnist_dscnn"), clean).save(model)
    noise = ["--data", "bundled", "--corruption", "impulse_noise", "--corruption-seed", "7"]
    options = ["--limit", "150", "--valid-limit", "20", "--epochs", "1", "--queries", "2"]
    held = r"only \.pmt and \.h files hold the filters \(switching_.* \d+\); "
    assert main(["train", str(model), *noise, *options, "--layers", "head", "--out", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(f"{held}for other formats train with .* align\\+head", lines[-2])
    assert lines[-1].startswith("the model is ")
    aligned = str(tmp_path / "aligned.pmt")
    assert main(["align", str(model), *noise, "--limit", "150", "--out", aligned]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(f"{held}for other formats align with --no-input", lines[1])


def test_one_is_singular(files, tmp_path, capsys):
    model, data = map(str, files)
    sizes = ("--epochs", "1", "--batch", "60")
    arguments = ["--layers", "B2", *sizes, "--queries", "2", "--no-keep-best"]
    assert main(["train", model, "--data", data, *arguments, "--out", str(tmp_path / "run")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3] == "steps   1 epoch of 1 step of 60 images, 2 queries for each image and layer"


def test_train_reports_every_epoch_and_leaves_a_run(files, tmp_path, capsys):
    run = tmp_path / "run"
    assert main(command(files, run)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"model   {files[0]}"
    assert lines[1] == (
        f"data    {files[1]}, gaussian_noise severity 5: 60 training, 20 test images"
    )
    assert lines[2] == "layers  B2: depth, project"
    assert lines[3] == (
        "steps   2 epochs of 4 steps of 10 images, 6 queries for each image and layer"
    )
    assert lines[4] == (
        "choice  12 of the training images choose the state that is kept (12 forwards each); "
        "--no-keep-best trains on all"
    )
    assert lines[5:7] == NOTES
    assert re.split(" {2,}", lines[7].strip()) == [
        *("epoch", "train loss", "train acc", "held-out", "test loss", "test acc"),
        *("changed", "forwards", "GMAC", "seconds"),
    ]
    assert [line.split()[0] for line in lines[8:11]] == ["start", "1", "2"]
    assert re.fullmatch(
        r"accuracy 0\.\d{4} -> 0\.\d{4}, loss \d\.\d{4} -> \d\.\d{4} on the test images", lines[11]
    )
    # 8 steps of 10 images, 6 queries, 2 layers.
    assert lines[12].startswith("960 perturbed forwards, 0.")
    assert lines[13].startswith("kept ")
    assert lines[14:] == [f"the model is {run / 'best.pmt'}"]
    assert (run / "DONE").is_file()
    assert not same_weights(pmt.load(run / "checkpoint.pmt"), pmt.load(files[0]))


def test_train_as_json_is_what_the_run_and_python_say(files, tmp_path, capsys):
    run = tmp_path / "run"
    assert main(command(files, run, "--json", "-")) == 0
    figures = json.loads(capsys.readouterr().out)
    assert sorted(figures) == [
        "after", "before", "epochs", "forwards", "held_out", "kept", "layers", "macs", "model",
        "notes", "options", "phases", "refit", "seconds", "source",
    ]  # fmt: skip
    train = pmt.corruptions.corrupt(pmt.datasets.load(files[1]), "gaussian_noise", 5, seed=0)
    test = pmt.corruptions.corrupt(
        pmt.datasets.load(files[1], split="test"), "gaussian_noise", 5, seed=1
    )
    model = pmt.load(files[0])
    before = model.evaluate(test)
    trainer = pmt.ZOTrainer(
        layers="B2", queries=6, epochs=2, batch=10, learning_rate=0.2, seed=7, threads=1
    )
    result = trainer.fit(model, train, valid=test, progress=False)
    assert figures["before"] == {"accuracy": before.accuracy, "loss": before.loss}
    after = model.evaluate(test)
    assert figures["after"] == {"accuracy": after.accuracy, "loss": after.loss}
    assert len(figures["epochs"]) == 2
    assert figures["forwards"] == 960
    assert figures["macs"] == result.epochs[-1]["macs"]
    assert figures["layers"] == ["depth", "project"]
    assert figures["options"]["queries"] == 6
    assert same_weights(pmt.load(figures["model"]), model)


def test_a_run_killed_in_mid_epoch_ends_with_the_same_bytes(files, tmp_path, capsys):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert main(command(files, whole)) == 0
    process = program(*command(files, killed), code=SLOW)
    wait_for_steps(process, killed, 6)
    process.kill()
    process.communicate()
    assert not (killed / "DONE").exists()
    _, step = pmt.RunFolder(killed).load_checkpoint()
    assert 5 <= step < 8
    assert main(["train", "--resume", str(killed)]) == 0
    assert (killed / "checkpoint.pmt").read_bytes() == (whole / "checkpoint.pmt").read_bytes()
    assert (killed / "DONE").is_file()
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()[-7:-4]] == ["start", "1", "2"]


@pytest.mark.alone
def test_ctrl_c_stops_soon_and_the_same_command_goes_on(files, tmp_path, capsys):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    long = ["--queries", "4096", "--epochs", "1"]
    short = ["--epochs", "1"]
    process = program(*command(files, stopped, *long))
    deadline = time.monotonic() + 60
    while not (stopped / "config.toml").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    assert time.monotonic() - start < 3.0
    assert process.returncode == 130
    assert error == f"pmt: interrupted; continue with: pmt train --resume {stopped}\n"
    assert not (stopped / "DONE").exists()
    pmt.RunFolder(stopped).load_checkpoint()

    process = program(*command(files, tmp_path / "again", *short), code=SLOW)
    wait_for_steps(process, tmp_path / "again", 2)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert main(command(files, tmp_path / "again", *short)) == 0
    assert main(command(files, whole, *short)) == 0
    final = [(run / "checkpoint.pmt").read_bytes() for run in (tmp_path / "again", whole)]
    assert final[0] == final[1]
    capsys.readouterr()


def test_a_run_killed_in_its_creation_is_started_again(files, tmp_path, capsys):
    whole, begun = tmp_path / "whole", tmp_path / "begun"
    assert main(command(files, whole)) == 0
    begun.mkdir()
    (begun / "env.json").write_bytes((whole / "env.json").read_bytes())
    assert main(command(files, begun)) == 0
    assert (begun / "checkpoint.pmt").read_bytes() == (whole / "checkpoint.pmt").read_bytes()
    capsys.readouterr()


def test_a_second_process_in_the_same_folder_is_refused(files, tmp_path, capsys):
    run = tmp_path / "run"
    process = program(*command(files, run), code=SLOW)
    wait_for_steps(process, run, 1)
    resumed = ["train", "--resume", str(run)]
    for again, typed in ((command(files, run), "--out"), (resumed, "--resume")):
        assert main(again) == 2
        assert capsys.readouterr().err == (
            f"pmt: error: {typed}='{run}' is in use by {os.uname().nodename}, process "
            f"{process.pid}: wait until it has ended, or choose another folder (the lock is "
            f"{run}.lock)\n"
        )
    _, error = process.communicate()
    assert process.returncode == 0, error
    assert steps_done(run) == 8
    assert not (tmp_path / "run.lock").exists()


def test_a_full_disk_leaves_the_old_checkpoint(files, tmp_path, monkeypatch, capsys):
    run = tmp_path / "run"
    rename = os.replace

    def full_after_the_first(source, destination):
        if (run / "config.toml").exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        rename(source, destination)

    monkeypatch.setattr(os, "replace", full_after_the_first)
    assert main(command(files, run)) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"pmt: error: {run / 'best.pmt'}: could not write ")
    assert "No space left on device" in error
    model, step = pmt.RunFolder(run).load_checkpoint()
    assert step == 0
    assert same_weights(model, pmt.load(files[0]))
    assert [path.name for path in run.iterdir() if path.name.endswith(".part")] == []


def test_a_finished_run_is_reported_again_and_not_changed(files, tmp_path, capsys):
    run = tmp_path / "run"
    assert main(command(files, run)) == 0
    first = capsys.readouterr().out
    weights = (run / "checkpoint.pmt").read_bytes()
    assert main(command(files, run)) == 0
    assert capsys.readouterr().out == first
    assert main(["train", "--resume", str(run)]) == 0
    assert capsys.readouterr().out == first
    assert (run / "checkpoint.pmt").read_bytes() == weights


def test_other_options_or_other_images_are_not_a_resumption(files, tmp_path, capsys):
    run = tmp_path / "run"
    assert main(command(files, run)) == 0
    capsys.readouterr()
    assert main(command(files, run, "--seed", "8")) == 2
    assert "holds a run with other options or data; choose another folder" in (
        capsys.readouterr().err
    )
    _, data = files
    (data / "train.npz").unlink()
    (data / "test.npz").rename(data / "train.npz")
    pmt.datasets.save_npz(pmt.datasets.load(data), data / "test.npz")
    assert main(["train", "--resume", str(run)]) == 2
    assert capsys.readouterr().err == (
        f"pmt: error: {data}: the training images are no longer those that the run in {run} began "
        "with; restore them or start another run\n"
    )


@pytest.mark.parametrize(
    ("line", "other", "problem"),
    [
        ("rule", "", "[options] rule is missing"),
        ("limit", "", "[source] limit is missing"),
        ("model", "", "[source] model is missing"),
        (
            "rule",
            "aligned_rule = 1\n",
            "[options] aligned_rule is not an option of this version of pmt",
        ),
    ],
)
def test_a_run_of_another_version_is_not_resumed(line, other, problem, files, tmp_path, capsys):
    run = tmp_path / "run"
    assert main(command(files, run, "--limit", "20")) == 0
    capsys.readouterr()
    config = run / "config.toml"
    config.write_text(re.sub(rf"^{line} = .*\n", other, config.read_text(), flags=re.MULTILINE))
    assert main(["train", "--resume", str(run)]) == 2
    assert capsys.readouterr().err == (
        f"pmt: error: {config}: {problem}; use the version of pmt that began the run, which "
        "env.json names, or start the run again in another folder\n"
    )


@pytest.mark.parametrize(
    ("line", "value", "rule"),
    [("model", "inf", "text"), ("data", "4", "text"), ("limit", "2.5", "a whole number")],
)
def test_a_source_of_another_type_is_named(line, value, rule, files, tmp_path, capsys):
    run = tmp_path / "run"
    assert main(command(files, run, "--limit", "20")) == 0
    capsys.readouterr()
    config = run / "config.toml"
    text = re.sub(rf"^{line} = .*", f"{line} = {value}", config.read_text(), flags=re.MULTILINE)
    config.write_text(text)
    assert main(["train", "--resume", str(run)]) == 2
    assert capsys.readouterr().err == (
        f"pmt: error: {config}: [source] {line} = {value} must be {rule}; the run cannot be "
        "resumed\n"
    )


def test_a_run_without_its_config_is_not_resumed(files, tmp_path, capsys):
    run = tmp_path / "run"
    assert main(command(files, run, "--limit", "20")) == 0
    capsys.readouterr()
    (run / "config.toml").unlink()
    assert main(["train", "--resume", str(run)]) == 2
    assert capsys.readouterr().err == (
        f"pmt: error: --resume {str(run)!r} holds no run: no config.toml, which holds model, data "
        "and options; restore it, or begin the run again with its whole command\n"
    )


@pytest.mark.parametrize("name", ["a\nb", "\"'\\", "#=[x]", "\x01\x7f\x85\u2028\ufeff"])
def test_a_run_of_data_of_any_name_is_resumed(name, files, tmp_path):
    model, data = files
    named = data.rename(tmp_path / f"{name}{data.suffix}")
    run = tmp_path / f"run {name}"
    assert main(command((model, str(named)), run, "--limit", "20")) == 0
    config = parse_toml((run / "config.toml").read_bytes(), "config.toml")
    assert config["source"]["data"] == str(named)
    (run / "DONE").unlink()
    assert main(["train", "--resume", str(run)]) == 0


def test_a_run_of_python_without_a_source_says_who_can_resume_it(files, tmp_path, capsys):
    model, data = files
    images = pmt.datasets.load(data)
    pmt.ZOTrainer(queries=2, epochs=1, batch=30).fit(
        pmt.load(model), images, out=tmp_path / "run", progress=False
    )
    assert main(["train", "--resume", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err == (
        f"pmt: error: {tmp_path / 'run'}: config.toml names no data; resume the run with the "
        "program that started it\n"
    )


def test_training_on_from_a_run_with_its_own_images_says_so(files, tmp_path, capsys):
    first = tmp_path / "first"
    assert main(command(files, first, "--no-keep-best")) == 0
    note = (
        f"{first} was trained on the same images, the held-out ones among them, so the start looks "
        "better than it is; give other images, or --no-keep-best"
    )
    assert note not in capsys.readouterr().out
    for model in (first, first / "checkpoint.pmt"):
        assert main(command((model, files[1]), tmp_path / f"from-{model.name}")) == 0
        assert note in capsys.readouterr().out.splitlines()
    assert main(command((first, files[1]), tmp_path / "all", "--no-keep-best")) == 0
    assert note not in capsys.readouterr().out
    fewer = command((first, files[1]), tmp_path / "fewer", "--limit", "50")
    assert main(fewer) == 0
    assert note not in capsys.readouterr().out


def test_images_that_only_chose_a_state_are_not_seen(files, tmp_path, capsys):
    first = tmp_path / "first"
    assert main(command(files, first)) == 0
    assert main(command((first, files[1]), tmp_path / "same")) == 0
    assert "was trained on the same images" not in capsys.readouterr().out
    assert main(command((first, files[1]), tmp_path / "other", "--seed", "9")) == 0
    assert f"{first} was trained on the same images" in capsys.readouterr().out


def test_data_without_a_test_split_is_not_watched(files, tmp_path, capsys):
    model, data = files
    arguments = ["train", str(model), "--data", str(data / "train.npz"), *OPTIONS]
    assert main([*arguments, "--out", str(tmp_path / "run"), "--json", "-"]) == 0
    printed = capsys.readouterr()
    assert "60 training, no separate test images" in printed.err
    figures = json.loads(printed.out)
    assert figures["before"] is None
    assert figures["after"] is None
