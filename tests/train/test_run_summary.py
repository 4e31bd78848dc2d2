"""A run folder as HTML: whose run it is, how far it is, and what came out."""

from __future__ import annotations

import pytest
from networks import labels, pixels, residual_network

import pmt
from pmt.datasets import Dataset
from pmt.train.run.folder import summary_rows


@pytest.fixture
def folder(tmp_path) -> pmt.RunFolder:
    model = residual_network()
    data = Dataset(pixels(model, 8), labels(model, 8), tuple("abcd"), "random")
    trainer = pmt.ZOTrainer(layers="head", epochs=2, batch=4, threads=1, preparation="none")
    source = {"model": "small.pmt", "data": "<data>", "corruption": "", "severity": 0}
    trainer.fit(model, data, valid=data, out=tmp_path / "run", source=source, progress=False)
    return pmt.RunFolder(tmp_path / "run")


def test_the_rows_say_whose_run_it_is_and_what_came_out(folder):
    start, *_, end = (r for r in folder.read_metrics() if "valid_loss" in r)
    assert summary_rows(folder) == [
        ["trainer", "zeroth_order"],
        ["model", "small.pmt"],
        ["data", "<data>"],
        ["layers", "head"],
        ["epochs", "2"],
        ["seed", "1"],
        ["state", "finished, 4 steps"],
        ["before training",
         f"loss {start['valid_loss']:.4f}, accuracy {start['valid_accuracy']:.4f}"],
        ["epoch 2", f"loss {end['valid_loss']:.4f}, accuracy {end['valid_accuracy']:.4f}"],
    ]  # fmt: skip


def test_the_folder_as_html(folder):
    html = folder._repr_html_()
    assert html.startswith(
        f"<table><caption>{folder.path}</caption><tbody><tr><td>trainer</td><td>zeroth_order</td>"
    )
    assert "<td>data</td><td>&lt;data&gt;</td>" in html
    assert repr(folder) == f"RunFolder({str(folder.path)!r})"


def test_an_unfinished_run_says_so(folder):
    (folder.path / "DONE").unlink()
    assert ["state", "not finished, 4 steps"] in summary_rows(folder)


def test_a_folder_without_a_run_and_a_damaged_one(folder, tmp_path):
    assert summary_rows(pmt.RunFolder(tmp_path / "none")) == [["state", "holds no run"]]
    (folder.path / "config.toml").write_text("[source]\n")
    assert summary_rows(folder) == [
        ["state", f"cannot be read: {folder.path}/config.toml: holds no [options]; the run cannot "
         "be resumed"],
    ]  # fmt: skip
