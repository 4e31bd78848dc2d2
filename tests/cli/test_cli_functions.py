"""Each command is one public function: called as a notebook calls it, it gives the same figures."""

from typing import Any

import pytest
from cli_files import same_weights, write_data, write_model
from printed_figures import plain, printed_by

import pmt
from pmt.baselines.sparse_update import TinyTrainOptions, choose_scheme
from pmt.cli import main
from pmt.firmware.board.profile import profile_methods
from pmt.firmware.export import export_files
from pmt.methods import adapt
from pmt.model import convert
from pmt.profiling.model_info import describe_model
from pmt.protocol import DataSource, SplitChoice, write_corrupted
from pmt.sheets import make_sheet
from pmt.train.choose import select_block
from pmt.train.prepare import align_model, store_statistics


@pytest.fixture
def model(tmp_path):
    return str(write_model(tmp_path))


@pytest.fixture
def data(tmp_path):
    return str(write_data(tmp_path))


@pytest.fixture
def printed(capsys):
    return printed_by(main, capsys)


def noisy(data: str) -> DataSource:
    return DataSource(data, "gaussian_noise", 5)


NOISE = ("--corruption", "gaussian_noise")
SMALL = ("--batch", "10", "--queries", "4", "--threads", "1")


def test_train(model, data, tmp_path, printed):
    there, here = tmp_path / "a", tmp_path / "b"
    options = ("--layers", "B2", "--epochs", "2", "--limit", "40", *SMALL)
    expected = printed("train", model, "--data", data, *NOISE, *options, "--out", there)
    trainer = pmt.methods.trainer("default", layers="B2", epochs=2, batch=10, queries=4, threads=1)
    done = adapt(model, noisy(data), trainer, here, limit=40, progress=False)
    assert plain(done.to_json()) == {**plain(expected), "model": str(here / "best.pmt")}
    assert done.run.layers == expected["layers"] == ["depth", "project"]
    assert same_weights(done.run.model, pmt.load(there))


def test_a_run_that_was_interrupted_goes_on(model, data, tmp_path):
    trainer = pmt.ZOTrainer(layers="B2", epochs=2, batch=10, queries=2, threads=1)

    def stop(step: int, record: dict[str, Any]) -> None:
        if step == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        adapt(model, noisy(data), trainer, tmp_path / "run", progress=stop)
    resumed = pmt.methods.resume_run(tmp_path / "run", threads=1).fit(False)
    other = adapt(model, noisy(data), trainer, tmp_path / "other", progress=False)
    assert same_weights(resumed.run.model, other.run.model)


def test_a_run_of_relative_paths_goes_on_from_anywhere(model, data, tmp_path, monkeypatch):
    trainer = pmt.ZOTrainer(layers="B2", epochs=1, batch=10, queries=2, threads=1)
    monkeypatch.chdir(tmp_path)
    adapt("small.pmt", DataSource("data"), trainer, "run", progress=False)
    monkeypatch.chdir("/")
    resumed = pmt.methods.resume_run(tmp_path / "run", threads=1)
    assert (resumed.source["model"], resumed.source["data"]) == (model, data)


def test_select(model, data, printed):
    options = ("--blocks", "B1,B2+head", "--images", "40", "--held-out", "10", *SMALL)
    expected = printed("select", model, "--data", data, *NOISE, *options)
    result = select_block(
        pmt.load(model),
        noisy(data),
        split=SplitChoice(images=40, held_out=10),
        options=pmt.TrainingOptions(epochs=1, batch=10, queries=4),
        candidates=("B1", "B2+head"),
        threads=1,
    )
    assert plain(result.to_json()) == plain(expected)
    assert result.best.name == expected["best"]


def test_a_selection_needs_held_out_images(model, data):
    with pytest.raises(ValueError, match=r"^held_out 0: a choice needs held-out images"):
        select_block(pmt.load(model), noisy(data), split=SplitChoice(images=40, held_out=0))


def test_a_split_of_the_paper_takes_no_numbers(model, data):
    with pytest.raises(ValueError, match=r"^images is fixed by protocol paper; leave it out$"):
        select_block(pmt.load(model), noisy(data), split=SplitChoice("paper", images=40))


def test_scheme(model, data, tmp_path, printed):
    pytest.importorskip("torch")
    options = ("--method", "tinytrain", "--memory", "1K")
    options += ("--images", "60", "--held-out", "20", "--scored-images", "4", "--threads", "1")
    out = ("--out", tmp_path / "scheme.json")
    expected = printed("scheme", model, "--data", data, *options, *out)
    chosen = choose_scheme(
        pmt.load(model),
        DataSource(data),
        "tinytrain",
        split=SplitChoice(images=60, held_out=20),
        memory=1024,
        tinytrain=TinyTrainOptions(scored_images=4),
        threads=1,
    )
    assert plain(chosen.to_json()) == plain(expected)


def test_statistics_and_align(model, data, tmp_path, printed):
    stored, out = tmp_path / "stored.pmt", tmp_path / "aligned.pmt"
    options = ("--data", data, "--limit", "30", "--threads", "1")
    expected = printed("statistics", model, *options, "--out", stored)
    source = DataSource(data)
    measured = store_statistics(pmt.load(model), source, limit=30, threads=1)
    assert {"out": str(stored), **measured.to_json()} == expected
    assert measured.model.image() == stored.read_bytes()

    expected = printed("align", stored, *options, *NOISE, "--no-windows", "--out", out)
    aligned = measured.model.copy()
    done = align_model(aligned, noisy(data), limit=30, threads=1, windows=False)
    assert {"out": str(out), **done.to_json()} == expected
    assert aligned.image() == out.read_bytes()


def test_corrupt(data, tmp_path, printed):
    there, here = tmp_path / "a", tmp_path / "b"
    expected = printed("corrupt", data, "--name", "fog,contrast", "--limit", "5", "--out", there)
    copies = write_corrupted(data, here, names=("fog", "contrast"), limit=5)
    assert plain(copies.to_json()) == {**plain(expected), "out": str(here)}
    for name in ("fog.npy", "contrast.npy", "labels.npy", "manifest.json"):
        assert (here / name).read_bytes() == (there / name).read_bytes()
    again = write_corrupted(data, here, names=("fog",), limit=5)
    assert (again.already_there, again.made) == (["fog"], [])


def test_show(data, tmp_path, printed):
    out = tmp_path / "sheet.png"
    options = ("--corruptions", "fog", "--severities", "1,5", "--index", "3,1")
    expected = printed("show", data, *options, "--out", out)
    sheet = make_sheet(data, corruptions=("fog",), severities=(1, 5), index=(3, 1))
    assert [row.label for row in sheet.rows] == expected["rows"] == ["fog"]
    assert sheet.columns == expected["columns"] == 6
    assert out.read_bytes()[:4] == b"\x89PNG"


def test_export(model, data, tmp_path, printed):
    there, here = tmp_path / "a", tmp_path / "b"
    target = ("--target", "qemu-mps2-an500", "--steps", "2", "--out", there)
    expected = printed("export", model, "--data", data, *NOISE, "--layers", "B2", *target)
    report = export_files(
        model,
        target="qemu-mps2-an500",
        out=here,
        data=noisy(data),
        options={"layers": "B2"},
        steps=2,
    )
    moved = {"path": str(here), "run": f"make -C {here} qemu"}
    assert plain(report.to_json()) == {**plain(expected), **moved}
    for name in ("card.img", "model/model.pmt", "expected.json", "export.json"):
        assert (here / name).read_bytes() == (there / name).read_bytes()


def test_profile(model, printed):
    options = ("--layers", "B2", "--against", "all", "--target", "qemu-mps2-an500")
    expected = printed("profile", model, "--method", "paper", *options)
    network, target = pmt.load(model), "qemu-mps2-an500"
    found = profile_methods(network, "paper", against="all", layers="B2", target=target)
    assert plain(found.to_json()) == plain(expected)
    assert "tinytrain" in expected["left_out"]


def test_info(model, printed):
    expected = printed("info", model, "--layers", "B2", "--batch", "4")
    options = pmt.TrainingOptions(layers="B2", batch=4)
    assert plain(describe_model(pmt.load(model), options).to_json()) == plain(expected)


def test_info_of_another_rule(model, printed):
    expected = printed("info", model, "--rule", "node")
    options = pmt.TrainingOptions(rule="node")
    assert plain(describe_model(pmt.load(model), options).to_json()) == plain(expected)
    kinds = [layer["estimator"] for layer in expected["layers"]]
    assert kinds == ["node_perturbation"] * 5 + ["closed_form"]


def test_convert(model, tmp_path, printed):
    expected = printed("convert", model, tmp_path / "a.npz")
    written = convert(model, tmp_path / "b.npz")
    assert plain(written.to_json()) == {**plain(expected), "path": str(tmp_path / "b.npz")}


def test_eval(model, data, printed):
    expected = printed("eval", model, "--data", data, *NOISE, "--limit", "7")
    loaded = pmt.load(model)
    assert vars(loaded.evaluate(noisy(data).load("test", loaded, limit=7))) == expected
