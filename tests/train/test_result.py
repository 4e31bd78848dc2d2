"""A result: its table, its plot, its records; a run folder in a few rows."""

import sys
from dataclasses import replace
from typing import Any, get_type_hints

import pytest
from networks import residual_network
from toy_trainer import data

import pmt
from pmt.train.run.folder import summary_rows
from pmt.train.run.metrics import StateRecord
from pmt.train.run.result import columns

START = {
    "kind": "start",
    "phase": "start",
    "held_out_loss": 1.25,
    "valid_loss": 1.5,
    "valid_accuracy": 0.25,
    "macs": 0,
}
EPOCH = {
    "epoch": 1.5,
    "train_loss": 0.5,
    "train_accuracy": 0.12345,
    "held_out_loss": 1.0,
    "valid_loss": 1.25,
    "valid_accuracy": 0.5,
    "changed": 1234,
    "forwards": 64000,
    "macs": 1_234_560_000_000,
    "seconds": 2.25,
}
TITLES = (
    *("epoch", "train loss", "train acc", "held-out", "valid loss", "valid acc", "changed"),
    *("forwards", "GMAC", "seconds"),
)
CELLS = (
    *("1.5", "0.5000", "0.1235", "1.0000", "1.2500", "0.5000", "1,234", "64,000", "1,234.6"),
    "2.2",
)


@pytest.fixture
def result():
    epochs = [
        {
            "epoch": epoch,
            "train_loss": 0.5 / epoch,
            "train_accuracy": 0.6,
            "valid_loss": 0.4 / epoch,
            "valid_accuracy": 0.7,
        }
        for epoch in (1, 2)
    ]
    start = {"phase": "start", "valid_loss": 1.0, "valid_accuracy": 0.25}
    head = {"phase": "head", "valid_loss": 0.5, "valid_accuracy": 0.5}
    return pmt.RunResult(residual_network(), epochs, [start, head])


def axes() -> Any:
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib.figure import Figure

    return Figure(layout="constrained").add_subplot()


def test_the_plot_shows_loss_and_accuracy_from_before_training_on(result):
    ax = axes()
    assert result.plot(ax) is ax
    lines = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
    assert lines == {
        "loss, training images": [[1, 0.5], [2, 0.25]],
        "loss, validation images": [[-1, 1.0], [0, 0.5], [1, 0.4], [2, 0.2]],
    }
    ticks = ax.xaxis.get_major_formatter()
    assert [ticks(x, 0) for x in (-1, 0, 1, 3)] == ["start", "head", "1", ""]
    accuracy = ax.figure.axes[1]
    assert accuracy.get_legend() is not None
    assert accuracy.lines[1].get_xydata().tolist() == [[-1, 0.25], [0, 0.5], [1, 0.7], [2, 0.7]]
    names = [text.get_text() for text in accuracy.get_legend().get_texts()]
    assert names == ["training images", "validation images"]
    assert (ax.get_title("left"), accuracy.get_title("right")) == ("● loss (nats)", "○ accuracy")
    assert {line.get_fillstyle() for line in ax.lines} == {"full"}
    assert {line.get_fillstyle() for line in accuracy.lines} == {"none"}


def test_the_plot_marks_the_kept_state_and_shows_its_refit_apart(result):
    refit = {"train_loss": 0.2, "train_accuracy": 0.8}
    ax = axes()
    replace(result, kept=result.epochs[0], refit=refit).plot(ax)
    lines = {line.get_label(): line.get_xdata() for line in ax.lines}
    assert lines["kept state"][0] == 1
    apart = [line.get_xydata().tolist() for line in ax.lines if line.get_label()[0] == "_"]
    assert apart == [[[3, 0.2]]]
    assert ax.xaxis.get_major_formatter()(3, 0) == "refit"
    names = [text.get_text() for text in ax.figure.axes[1].get_legend().get_texts()]
    assert names == ["training images", "validation images", "kept state"]


def test_the_plot_names_the_images_as_it_is_told(result):
    ax = axes()
    result.plot(ax, valid="test images")
    assert [line.get_label() for line in ax.figure.axes[1].lines] == [
        "accuracy, training images",
        "accuracy, test images",
    ]


def test_a_plot_in_a_grid_leaves_its_right_neighbor_room(result):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3))
    left, right = figure.subplots(1, 2)
    result.plot(left)
    result.plot(right)
    figure.draw_without_rendering()
    losses, accuracies = left.figure.axes[0], left.figure.axes[2]
    end = losses.get_window_extent().x1
    assert accuracies.get_tightbbox().x1 < end + 2 < right.get_tightbbox().x0
    assert losses.get_ylabel() == accuracies.get_ylabel() == ""
    ticks = [text.get_text() for text in accuracies.get_yticklabels()]
    assert ticks == ["", "0.2", "0.4", "0.6", "0.8", ""]


def test_without_matplotlib_the_error_says_what_to_install(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "poor-mans-training\[plot\]"'):
        result.plot()


def test_titles_and_digits():
    found = columns([START, EPOCH])
    assert tuple(column.title for column in found) == TITLES
    assert tuple(column.cell(EPOCH, "") for column in found) == CELLS
    assert [column.cell(START, "-") for column in found][:4] == ["start", "-", "-", "1.2500"]
    watched = [column.title for column in columns([START], watched="test")]
    assert watched[4:6] == ["test loss", "test acc"]


def test_cross_validation_has_a_column_where_it_judged():
    judged = {**START, "out_of_fold_loss": 1.125}
    titles = [column.title for column in columns([judged, EPOCH])]
    assert titles[2:5] == ["train acc", "out-of-fold", "held-out"]
    result = pmt.RunResult(residual_network(), [EPOCH], [judged])
    assert str(result).splitlines()[:2] == [
        "epoch  train loss  train acc  out-of-fold  held-out  valid loss  valid acc  changed  "
        "forwards     GMAC  seconds",
        "start           -          -       1.1250    1.2500      1.5000     0.2500        -  "
        "       -      0.0        -",
    ]


@pytest.fixture
def folder(tmp_path):
    images = data(8)
    trainer = pmt.ZOTrainer(layers="head", epochs=2, batch=4, threads=1, preparation="none")
    source = {"model": "small.pmt", "data": "<data>", "corruption": "", "severity": 0}
    out = tmp_path / "run"
    valid = data(8, 9)
    trainer.fit(residual_network(), images, valid=valid, out=out, source=source, progress=False)
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


def test_records_hold_what_their_type_says():
    images = pmt.datasets.bundled("train")
    model = pmt.statistics(pmt.load("fashion_mnist_dscnn"), images[:64].images)
    noisy = pmt.corruptions.corrupt(images[:300], "impulse_noise", 5, seed=1)
    trainer = pmt.ZOTrainer(layers="B2,head", epochs=1, queries=2)
    result = trainer.fit(model, noisy[:200], valid=noisy[200:])
    records = [*result.phases, *result.epochs, result.kept, result.refit]
    assert len(result.phases) > 1
    assert len(result.epochs) == 1
    kinds = get_type_hints(StateRecord)
    for record in records:
        assert [key for key in record if key not in kinds] == []
        for key, value in record.items():
            assert isinstance(value, (int, float) if kinds[key] is float else kinds[key])
    assert {"train_loss", "valid_accuracy", "held_out_loss", "macs"} <= set(result.epochs[0])
