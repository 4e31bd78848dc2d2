"""The plot of a result: what it draws, and what it says where matplotlib is missing."""

from __future__ import annotations

import sys

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


def test_the_plot_shows_loss_and_accuracy_from_before_training_on(result):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    ax = Figure(layout="constrained").add_subplot()
    assert result.plot(ax) is ax
    lines = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
    assert lines == {
        "train loss": [[1, 0.5], [2, 0.25]],
        "valid loss": [[-1, 1.0], [0, 0.5], [1, 0.4], [2, 0.2]],
    }
    assert [ax.xaxis.get_major_formatter()(x, 0) for x in (-1, 0, 1)] == ["start", "head", "1"]
    accuracy = ax.figure.axes[1]
    assert accuracy.lines[1].get_xydata().tolist() == [[-1, 0.25], [0, 0.5], [1, 0.7], [2, 0.7]]
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["train loss", "valid loss", "train accuracy", "valid accuracy"]


def test_without_matplotlib_the_error_says_what_to_install(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "poor-mans-training\[plot\]"'):
        result.plot()
