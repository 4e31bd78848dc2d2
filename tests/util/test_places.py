"""Places that cannot be written: read-only, links to themselves, and a removed working folder."""

import os
from pathlib import Path

import pytest

import pmt
from pmt._util.places import check_place
from pmt.cli import main

TRAIN = ["train", "fashion_mnist_dscnn", "--data", "bundled", "--out"]
EXPORT = ["export", "fashion_mnist_dscnn", "--target", "generic", "--out"]
CORRUPT = ["corrupt", "bundled", "--name", "fog", "--limit", "2", "--out"]
STATISTICS = ["statistics", "fashion_mnist_dscnn", "--data", "bundled", "--limit", "8", "--out"]
EVAL = ["eval", "fashion_mnist_dscnn", "--data", "bundled", "--limit", "2", "--json"]
ALL = [TRAIN, EXPORT, CORRUPT, STATISTICS, EVAL, ["demo", "--out"]]


def test_links_that_lead_somewhere_are_no_matter(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    check_place(tmp_path / "link" / "new", "out")


LOOP = "{folder}/loop is a link to itself; remove it"
FILE = "{folder}/file is a file, not a folder"
NOTHING = "a link to a folder that is not there; make the folder"


@pytest.mark.parametrize(
    ("commands", "name", "told"),
    [
        ((TRAIN, EXPORT), "loop", f"--out='{{out}}': {LOOP}"),
        ((TRAIN, EXPORT), "loop/run", f"--out='{{out}}': {LOOP}"),
        ((TRAIN, EXPORT), "file/below/run", f"--out='{{out}}': {FILE}"),
        ((TRAIN,), "link", f"--out='{{out}}' is {NOTHING}"),
        ((TRAIN,), "link/run", f"--out='{{out}}': {{folder}}/link is {NOTHING}"),
        ((CORRUPT,), "file/made", f"--out {{out}}: {FILE}"),
        ((CORRUPT,), "/dev/null/made", "--out {out}: /dev/null is a file, not a folder"),
        ((CORRUPT,), "loop/made", f"--out {{out}}: {LOOP}"),
        ((CORRUPT,), "link/made", f"--out {{out}}: {{folder}}/link is {NOTHING}"),
        ((CORRUPT,), "link", f"--out {{out}} is {NOTHING}"),
        ((STATISTICS,), "file/made.pmt", "--out {out}: {folder}/file is a file; choose a folder"),
        ((EVAL,), "file/made.pmt", "--json {out}: {folder}/file is a file; choose a folder"),
    ],
)
def test_places_below_what_is_no_folder(commands, name, told, tmp_path, capsys):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "link").symlink_to("nothing")
    out = tmp_path / name
    for command in commands:
        assert main([*command, str(out)]) == 2
        message = told.format(out=out, folder=tmp_path)
        assert capsys.readouterr() == ("", f"pmt: error: {message}\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link", "loop"]


def test_a_path_from_a_working_folder_that_is_gone(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    check_place(tmp_path / "run", "out")
    with pytest.raises(FileNotFoundError, match=r"^the working folder was removed, and no path is"):
        check_place(Path("run"), "out")


@pytest.mark.parametrize("command", [TRAIN, EXPORT, ["eval", "fashion_mnist_dscnn", "--data"]])
def test_a_working_folder_that_is_gone(command, tmp_path, monkeypatch, capsys):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(FileNotFoundError):
        os.getcwd()
    assert main([*command, "run"]) == 2
    assert capsys.readouterr().err == (
        "pmt: error: the working folder was removed, and no path is found from it; change to "
        "another one\n"
    )


@pytest.fixture
def read_only(tmp_path, monkeypatch):
    """A folder that cannot be written, by an answer that is made: root may write everywhere."""
    folder = tmp_path / "fixed"
    folder.mkdir()
    monkeypatch.setattr("os.access", lambda place, mode: folder not in (place, *place.parents))
    return folder


@pytest.mark.parametrize("command", [TRAIN, EXPORT], ids=["train", "export"])
@pytest.mark.parametrize("below", ["", "new", "new/run"])
def test_folders_that_cannot_be_written(command, below, read_only, capsys):
    out = read_only / below
    assert main([*command, str(out)]) == 2
    assert capsys.readouterr() == (
        "",
        f"pmt: error: --out {out}: {read_only} cannot be written; choose a folder that you may "
        "write to\n",
    )
    with pytest.raises(PermissionError, match=f"^out: {read_only} cannot be written; choose"):
        check_place(out, "out")


def test_a_run_in_a_folder_that_cannot_be_written(read_only):
    model, data = pmt.load("fashion_mnist_dscnn"), pmt.datasets.bundled("train").take(100)
    before = model.image()
    with pytest.raises(PermissionError, match="fixed cannot be written"):
        pmt.ZOTrainer(epochs=1).fit(model, data, out=read_only / "run")
    assert model.image() == before


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder of Linux")
@pytest.mark.parametrize("command", ALL, ids=lambda command: command[0])
@pytest.mark.parametrize("linked", [False, True])
def test_folders_that_take_no_files_of_anyone(command, linked, tmp_path, capsys):
    """Root may write to /proc by its mode, and still makes no file in it."""
    out = Path("/proc/made.pmt")
    if linked:
        out = tmp_path / "link.pmt"
        out.symlink_to("/proc/made.pmt")
    assert main([*command, str(out)]) == 2
    assert capsys.readouterr() == (
        "",
        f"pmt: error: {command[-1]} {out}: /proc cannot be written; choose a folder that you may "
        "write to\n",
    )


@pytest.mark.parametrize("command", [TRAIN, EXPORT], ids=["train", "export"])
def test_an_empty_name(command, capsys):
    assert main([*command, ""]) == 2
    assert capsys.readouterr().err == (
        "pmt: error: --out '': the name is empty; name a file or folder\n"
    )


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("", ValueError, "{}='' names nothing; give the name of a file or folder"),
        ("a\0b", ValueError, "{}='a\\x00b': no path may hold a zero byte; remove it"),
        (3, TypeError, "{} is 3: must be text or a path"),
    ],
)
def test_what_is_no_path(given, error, message):
    model, data = pmt.load("fashion_mnist_dscnn"), pmt.datasets.bundled("train")[:200]
    board = "qemu-mps2-an500"
    for argument, call in (
        ("path", lambda: pmt.RunFolder(given)),
        ("path", lambda: model.save(given)),
        ("path", lambda: pmt.datasets.save_npz(data, given)),
        ("path", lambda: pmt.datasets.load(given)),
        ("out", lambda: pmt.ZOTrainer(epochs=1, batch=4).fit(model, data, out=given)),
        ("out", lambda: pmt.export(model, target=board, out=given, dataset=data)),
        ("out", lambda: pmt.export_learner(model, target=board, out=given)),
        ("out", lambda: pmt.select(model, data, data, out=given)),
    ):
        with pytest.raises(error) as caught:
            call()
        assert str(caught.value) == message.format(argument)
