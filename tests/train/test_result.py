"""The plot of a result: what it draws, and what it says where matplotlib is missing."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest
from networks import residual_network

import pmt


@pytest.fixture
def result() -> pmt.RunResult:
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
