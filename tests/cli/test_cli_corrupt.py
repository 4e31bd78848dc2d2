"""pmt corrupt: the layout it writes, what it makes again, and how it stops."""

import argparse
import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from cifar_files import write_binary_100
from cli_files import program, write_data, write_model
from frost_overlays import write_overlays
from networks import residual_network

from pmt import corruptions
from pmt._util import atomic_file, processes
from pmt._util.progress import ProgressLine
from pmt.cli import main
from pmt.cli.arguments import add_data, data_source
from pmt.corruptions import ArrayWriter, corrupt, names, split_seed
from pmt.corruptions import array_writer as writer_module
from pmt.datasets import Dataset, load, load_corrupted
from pmt.protocol.data_source import DataSource

NAMES = ("contrast", "shot_noise")


@pytest.fixture
def data(tmp_path):
    return write_data(tmp_path, train=12, test=7)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def run(data: Path, out: Path, *more: str) -> int:
    return main(["corrupt", str(data), "--name", ",".join(NAMES), "--out", str(out), *more])


def test_help_lists_every_corruption(capsys):
    assert main(["corrupt", "--help"]) == 0
    help_text = " ".join(capsys.readouterr().out.split())
    assert f"separated by commas: {', '.join(names())} --out" in help_text


def test_the_layout_is_that_of_cifar_10_c(data, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(data, out, "--seed", "4", "--json", str(tmp_path / "figures.json")) == 0
    assert sorted(files(out)) == ["contrast.npy", "labels.npy", "manifest.json", "shot_noise.npy"]
    clean = load(data, split="test")
    labels = np.load(out / "labels.npy")
    assert labels.dtype == np.uint8
    assert labels.tolist() == clean.labels.tolist() * 5
    for name in NAMES:
        array = np.load(out / f"{name}.npy", allow_pickle=False)
        assert array.shape == (35, 8, 8, 3)
        for severity in range(1, 6):
            # The test split is corrupted with the next seed, as in every other command.
            expected = corrupt(clean.images, name, severity, seed=5)
            assert np.array_equal(array[7 * (severity - 1) : 7 * severity], expected)
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert [made["name"] for made in figures.pop("made")] == list(NAMES)
    assert figures == {
        "out": str(out), "n": 7, "split": "test", "seed": 4, "constants": "cifar10",
        "already_there": [], "left_out": {},
        "bytes": 2 * 35 * 8 * 8 * 3,
    }  # fmt: skip
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"7 test images 8x8x3 of {data}, 5 severities, seed 4"
    assert lines[-1] == f"2 arrays and labels.npy, 0.0 MB, in {out}"


def test_what_is_written_is_read_as_what_eval_makes(data, tmp_path, capsys):
    model, out = write_model(tmp_path), tmp_path / "c"
    arguments = ["--corruption", "shot_noise", "--severity", "2", "--limit", "5", "--json", "-"]
    assert main(["eval", str(model), "--data", str(data), *arguments]) == 0
    made = json.loads(capsys.readouterr().out)
    assert run(data, out) == 0
    capsys.readouterr()
    assert main(["eval", str(model), "--data", str(out), *arguments]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == made
    assert printed.err.startswith(
        f"5 test images of {out}, shot_noise severity 2, stored arrays\naccuracy "
    )


def test_a_limit_takes_what_other_commands_take(data, tmp_path):
    whole, some = tmp_path / "whole", tmp_path / "some"
    assert run(data, whole) == run(data, some, "--limit", "3") == 0
    of_whole = load_corrupted(whole, "shot_noise", 5)
    of_some = load_corrupted(some, "shot_noise", 5)
    positions = [
        int(np.flatnonzero((of_whole.images == image).all(axis=(1, 2, 3)))[0])
        for image in of_some.images
    ]
    assert len(set(positions)) == 3
    assert of_some.labels.tolist() == of_whole.labels[positions].tolist()


def test_train_takes_both_splits_from_arrays(data, tmp_path, capsys):
    both = tmp_path / "both"
    assert run(data, both / "train", "--split", "train") == run(data, both / "test") == 0
    model = write_model(tmp_path)
    capsys.readouterr()
    common = ["--corruption", "contrast", "--epochs", "1", "--batch", "4", "--queries", "2"]
    for name, source in (("a", data), ("b", both)):
        arguments = ["train", str(model), "--data", str(source), "--out", str(tmp_path / name)]
        assert main([*arguments, *common]) == 0
    checkpoints = [(tmp_path / name / "checkpoint.pmt").read_bytes() for name in "ab"]
    assert checkpoints[0] == checkpoints[1]
    lines = capsys.readouterr().out.splitlines()
    stored = f"{both / 'train'}, contrast severity 5, stored arrays: 12 training, 7 test images"
    assert f"data    {stored}" in lines
    assert f"test    {both / 'test'}, contrast severity 5, stored arrays" in lines


def test_whole_arrays_are_not_made_again_and_damaged_ones_are(data, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    assert run(data, out) == 0
    first = files(out)
    (out / "contrast.npy").write_bytes(first["contrast.npy"][:-1])
    made = []
    write = ArrayWriter.write
    monkeypatch.setattr(
        ArrayWriter, "write", lambda self, name, progress: made.append(name) or write(self, name)
    )
    assert run(data, out) == 0
    assert made == ["contrast"]
    assert files(out) == first
    assert "already there: shot_noise\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--seed", "1"], "seed is 0 there, 1 here"),
        (["--split", "train"], "split is 'test' there, 'train' here; images is 7 there, 12 here"),
        (["--constants", "imagenet"], "constants is 'cifar10' there, 'imagenet' here"),
        (["--limit", "6"], "images is 7 there, 6 here"),
    ],
)
def test_other_settings_never_mix(data, tmp_path, capsys, more, message):
    out = tmp_path / "out"
    assert run(data, out) == 0
    before = files(out)
    assert run(data, out, *more) == 2
    assert files(out) == before
    assert capsys.readouterr().err == (
        f"pmt: error: --out {out}: holds arrays of another data set or seed: {message}; choose "
        "another folder, or delete this one\n"
    )


def test_other_images_never_mix(data, tmp_path):
    clean = load(data, split="test")
    ArrayWriter(clean, tmp_path / "out").write("contrast")
    changed = np.array(clean.images)
    changed[3, 0, 0, 0] ^= 1
    other = Dataset(changed, clean.labels, clean.class_names, clean.name)
    with pytest.raises(FileExistsError, match="its clean images or labels were others"):
        ArrayWriter(other, tmp_path / "out")
    renamed = Dataset(clean.images, clean.labels, tuple("wxyz"), clean.name)
    with pytest.raises(FileExistsError, match="its class names were others"):
        ArrayWriter(renamed, tmp_path / "out")


def test_a_folder_of_something_else_is_left_alone(data, tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    (out / "fog.npy").write_bytes(b"published")
    assert run(data, out) == 2
    assert "is not empty and has no manifest.json, so `pmt corrupt` did not make it" in (
        capsys.readouterr().err
    )
    assert files(out) == {"fog.npy": b"published"}
    assert run(data, out / "fog.npy") == 2
    assert "fog.npy: is a file; choose another folder" in capsys.readouterr().err


def test_bad_names_are_told_at_once(data, tmp_path, capsys):
    out = str(tmp_path / "out")
    assert main(["corrupt", str(data), "--name", "fog,smog,,rain", "--out", out]) == 2
    assert "--name 'smog', '', 'rain' is unknown; choose all, or some of gaussian_noise, " in (
        capsys.readouterr().err
    )
    assert not Path(out).exists()


def test_what_a_corruption_lacks_is_told_before_the_work(data, tmp_path, capsys, monkeypatch):
    def lacking(images, name, severity, **options):
        if name == "shot_noise":
            raise FileNotFoundError("no photons; buy some")
        return corrupt(images, name, severity, **options)

    monkeypatch.setattr(writer_module, "corrupt", lacking)
    assert run(data, tmp_path / "out") == 2
    assert capsys.readouterr().err == "pmt: error: no photons; buy some\n"
    assert not (tmp_path / "out").exists()


def test_all_leaves_out_frost_without_its_photographs(data, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("PMT_DATA", raising=False)
    out, figures = tmp_path / "out", tmp_path / "figures.json"
    command = ["corrupt", str(data), "--limit", "1", "--out", str(out), "--json", str(figures)]
    why = (
        "frost needs the photographs frost1.png, frost2.png, frost3.png, frost4.jpg, frost5.jpg: "
        "get them from https://github.com/hendrycks/robustness/tree/master/ImageNet-C/create_c, "
        "put them into a folder frost and set PMT_DATA to the folder that it is in"
    )
    assert main([*command, "--name", "all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"1 test image 8x8x3 of {data}, 5 severities, seed 0", f"left out: {why}"]
    assert lines[-1] == f"18 arrays and labels.npy, 0.0 MB, in {out}"
    assert json.loads(figures.read_text())["left_out"] == {"frost": why}
    made = {path.stem for path in out.glob("*.npy")}
    assert made == {*names(), "labels"} - {"frost"}
    assert main([*command, "--name", "fog,frost"]) == 2
    assert capsys.readouterr().err == f"pmt: error: {why}\n"

    write_overlays(tmp_path / "frost")
    monkeypatch.setenv("PMT_DATA", str(tmp_path))
    assert main([*command, "--name", "all"]) == 0
    assert "left out" not in capsys.readouterr().out
    assert (out / "frost.npy").is_file()
    monkeypatch.delenv("PMT_DATA")
    assert main([*command, "--name", "all"]) == 0  # it is there already
    assert capsys.readouterr().out.splitlines()[-1].startswith("19 arrays and labels.npy, ")


def test_one_is_singular(data, tmp_path, capsys):
    out = tmp_path / "out"
    command = ["corrupt", str(data), "--name", "contrast", "--limit", "1", "--out", str(out)]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"1 array and labels.npy, 0.0 MB, in {out}"


def test_a_full_disk_is_told_before_the_work(data, tmp_path, capsys, monkeypatch):
    usage = type("usage", (), {"free": 1000})
    monkeypatch.setattr(writer_module.shutil, "disk_usage", lambda path: usage)
    assert run(data, tmp_path / "out") == 2
    assert "the arrays take 0 MB and 0 MB are free; free some space" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_disk_that_fills_up_leaves_whole_files_only(data, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    sync = os.fsync

    def full(descriptor: int) -> None:
        if os.fstat(descriptor).st_size > 5000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    with monkeypatch.context() as context:
        context.setattr(atomic_file.os, "fsync", full)
        assert run(data, out) == 2
    assert sorted(files(out)) == ["labels.npy", "manifest.json"]
    assert f"{out / 'contrast.npy'}: could not write 6720 bytes" in capsys.readouterr().err
    assert run(data, out) == 0
    assert len(files(out)) == 4


def test_a_killed_process_leaves_no_rubbish_for_ever(data, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    for name, text in (("manifest.json", b"{"), ("contrast.npy", b"half")):
        owner = f"{processes.machine_tag()}.{child.pid}"
        (out / f".{name}.0.{owner}.part").write_bytes(text)
    assert run(data, out) == 0
    assert not [name for name in files(out) if name.endswith(".part")]


SLOWLY = """
import sys, time
from pmt.cli import main
from pmt.corruptions import array_writer

corrupt = array_writer.corrupt

def slow(images, *arguments, **options):
    time.sleep(0.05 * (len(images) > 1))
    return corrupt(images, *arguments, **options)

array_writer.corrupt = slow
sys.exit(main(sys.argv[1:]))
"""


def test_ctrl_c_leaves_whole_files_and_the_same_command_goes_on(data, tmp_path):
    out = tmp_path / "out"
    names = "contrast,shot_noise,fog,gaussian_noise"
    arguments = ["corrupt", data, "--name", names, "--out", out]
    process = program(*arguments, code=SLOWLY)
    while not (out / "contrast.npy").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert (process.returncode, error) == (130, "pmt: interrupted; the same command continues\n")
    left = files(out)
    assert not [name for name in left if name.endswith(".part")]
    assert "gaussian_noise.npy" not in left
    assert main([str(argument) for argument in arguments]) == 0
    assert {name: files(out)[name] for name in left} == left
    assert len(files(out)) == 6


def test_coarse_labels_and_another_size(tmp_path):
    write_binary_100(tmp_path / "cifar-100-binary")
    out = tmp_path / "out"
    assert run(tmp_path, out, "--coarse-labels", "--size", "8", "--split", "train") == 0
    data = load_corrupted(out, "contrast", 1)
    assert data.images.shape == (2, 8, 8, 3)
    assert data.labels.tolist() == [1, 18]
    assert data.class_names[18] == "vehicles_1"


def test_every_command_reads_coarse_labels(tmp_path):
    write_binary_100(tmp_path / "cifar-100-binary")
    parser = argparse.ArgumentParser()
    add_data(parser, required=True)
    for more, labels, kept in (([], [91, 8], "fine"), (["--coarse-labels"], [1, 18], "coarse")):
        source = data_source(parser.parse_args(["--data", str(tmp_path), *more]))
        assert source.to_config()["labels"] == kept
        again = DataSource.from_config(source.to_config())
        assert again.load("train", residual_network()).labels.tolist() == labels
    assert DataSource.from_config({"data": "x"}).labels == "fine"


def test_a_resumed_run_keeps_its_labels(tmp_path, capsys):
    assert main(["train", "--resume", str(tmp_path), "--coarse-labels"]) == 2
    assert "--resume takes no --coarse-labels: the run's config.toml holds it" in (
        capsys.readouterr().err
    )


def test_the_constants_of_imagenet_c(data, tmp_path, capsys):
    model, out = write_model(tmp_path), tmp_path / "out"
    clean = load(data, split="test")
    assert run(data, out, "--constants", "imagenet") == 0
    expected = corrupt(clean.images, "shot_noise", 5, seed=1, constants="imagenet")
    assert np.array_equal(load_corrupted(out, "shot_noise", 5).images, expected)
    capsys.readouterr()
    losses = []
    for source in (out, data):
        arguments = ["eval", str(model), "--data", str(source), "--corruption", "shot_noise"]
        assert main([*arguments, "--constants", "imagenet", "--json", "-"]) == 0
        losses.append(json.loads(capsys.readouterr().out)["loss"])
    assert losses[0] == losses[1]
    assert run(data, out, "--constants", "mnist") == 2
    assert "--constants 'mnist' is unknown; choose one of cifar10, imagenet" in (
        capsys.readouterr().err
    )
    assert main(["eval", str(model), "--data", str(data), "--constants", "imagenet"]) == 2
    assert "--constants imagenet needs --corruption NAME" in capsys.readouterr().err


def test_many_classes_need_wide_labels(tmp_path):
    names = tuple(str(label) for label in range(300))
    data = Dataset(np.zeros((1, 4, 4, 1), np.uint8), np.array([299]), names, "wide")
    ArrayWriter(data, tmp_path / "out").write("contrast")
    assert np.load(tmp_path / "out" / "labels.npy").dtype == np.int64
    assert load_corrupted(tmp_path / "out", "contrast", 1).labels.tolist() == [299]


def test_a_writer_checks_its_arguments_before_it_makes_the_folder(data, tmp_path):
    clean = load(data, split="test")
    for more, message in (
        (
            {"constants": "mnist"},
            "constants='mnist' is unknown; choose one of cifar10, imagenet",
        ),
        ({"split": "valid"}, "split='valid' is unknown; choose one of train, test"),
        ({"seed": -1}, "seed=-1 must be 0 or more"),
    ):
        with pytest.raises(ValueError, match=message):
            ArrayWriter(clean, tmp_path / "out", **more)
    assert not (tmp_path / "out").exists()


def test_split_seed():
    assert (split_seed(7, "train"), split_seed(7, "test")) == (7, 8)
    with pytest.raises(ValueError, match="split='valid' is unknown; choose one of train, test"):
        corruptions.split_seed(0, "valid")


def test_progress_counts_images():
    line = ProgressLine(5000, unit="image", stream=io.StringIO())
    assert line.line(1000, "fog, 1 of 2", 0.5) == (
        " 20 %  image 1000/5000  2000.0 images/s  2 s left  fog, 1 of 2"
    )
