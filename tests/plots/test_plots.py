"""Plots: what is on them, and how they look, against stored pictures."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from networks import residual_network
from pictures import check_picture

import pmt
from pmt._util.plots import COLORS, bar_style, line_style
from pmt.plots import (
    plot_confusions,
    plot_memory,
    plot_selection,
    plot_sheet,
    plot_step_memory,
    save_plot,
)
from pmt.profiling.profile import Profile
from pmt.profiling.step_memory import Buffer, StepMemory, Stretch
from pmt.protocol.comparison import PairedMargin
from pmt.sheets import Group, Row, Sheet
from pmt.train.choose import Candidate, Selection
from pmt.train.costs.memory import Memory
from pmt.train.costs.work import Work

pytest.importorskip("matplotlib").use("Agg")
from matplotlib import pyplot  # noqa: E402

NAMES = ("ant", "bee", "cat")


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    pyplot.close("all")


def confusion(*rows: tuple[int, ...]) -> pmt.Confusion:
    return pmt.Confusion(np.array(rows, np.int64), NAMES)


BEFORE = confusion((5, 3, 2), (4, 4, 2), (0, 4, 6))
AFTER = confusion((9, 1, 0), (1, 8, 1), (0, 0, 10))


def candidate(name: str, loss: float, accuracy: float, margin: float) -> Candidate:
    zero = PairedMargin(0.0, 0.0)
    found = PairedMargin(margin, 0.05) if margin else zero
    return Candidate(name, 100, 10, 1000, 500, 20, 10_000, loss, accuracy, found, zero)


CANDIDATES = (
    candidate("B1", 1.40, 0.48, 0.30),
    candidate("B2", 1.10, 0.61, 0.0),
    candidate("B3", 1.15, 0.62, 0.05),
)
SELECTION = Selection("loss", CANDIDATES[1], CANDIDATES, 1.6, 0.4, 200, 2, pmt.TrainingOptions())

PROFILES = [
    Profile(
        "default", ("a",), 9, 1, 1, 8, Work(1), Memory(0, 20_000, 2_000, 40_000, 49_000, tables=500)
    ),
    Profile(
        "bp_int8",
        *(("a",), 9, 1, 1, 0, Work(1)),
        Memory(0, 20_000, 2_000, 0, 0, 16_000, 30_000, 200_000),
    ),
]

STEP = StepMemory(
    "default",
    (Stretch("forward", 0, 3), Stretch("query of conv2", 3, 6), Stretch("forward", 6, 8)),
    (
        Buffer("weights", "weights", 0, 2048, 0, 8),
        Buffer("input", "image", 2048, 4096, 0, 3),
        Buffer("activations", "conv1", 6144, 2048, 1, 3),
        Buffer("kept", "conv1", 6144, 2048, 3, 6),
        Buffer("query", "conv2", 2048, 3072, 3, 5),
        Buffer("scratch", "scratch", 5120, 512, 3, 4),
        Buffer("activations", "conv2", 2048, 3072, 6, 8),
    ),
    True,
    9216,
)


TILE = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
SHEET = Sheet(
    "two images",
    (Row("fog", [TILE, TILE // 2, TILE // 4, TILE]), Row("contrast", [TILE, None, TILE // 3], "x")),
    (Group("0: ant", ("original", "severity 1", "severity 3")), Group("1: bee", ("severity 1",))),
)


def run() -> pmt.RunResult:
    start = {"phase": "start", "held_out_loss": 2.0, "held_out_accuracy": 0.2, "macs": 0}
    epochs = [
        {
            "epoch": epoch,
            "macs": epoch * 10**9,
            "train_loss": 1.6 / epoch,
            "train_accuracy": 0.3 + 0.1 * epoch,
            "held_out_loss": 1.8 / epoch,
            "held_out_accuracy": 0.25 + 0.1 * epoch,
            "valid_loss": 1.9 / epoch,
            "valid_accuracy": 0.2 + 0.1 * epoch,
        }
        for epoch in (1, 2, 3, 4)
    ]
    refit = {"valid_loss": 0.4, "valid_accuracy": 0.66, "train_loss": 0.37, "macs": 5 * 10**9}
    return pmt.RunResult(residual_network(), epochs, [start], kept=epochs[2], refit=refit)


PICTURES: dict[str, Callable[[], Any]] = {
    "run": lambda: run().plot(valid="test images"),
    "confusions": lambda: plot_confusions(BEFORE, AFTER),
    "selection": lambda: plot_selection(SELECTION),
    "memory": lambda: plot_memory(PROFILES),
    "step_memory": lambda: plot_step_memory(STEP),
    "sheet": lambda: plot_sheet(SHEET),
}


@pytest.mark.parametrize("name", PICTURES)
def test_plots_look_as_they_did(name, tmp_path):
    check_picture(PICTURES[name], name, tmp_path)


@pytest.mark.parametrize("name", PICTURES)
def test_a_plot_on_given_axes_makes_no_figure(name):
    """All are methods or functions with ``ax``, and return what they were given."""
    given = pyplot.subplots(1, 3)[1]
    calls: dict[str, Callable[[], tuple[Any, Any]]] = {
        "run": lambda: (given[0], run().plot(given[0])),
        "confusions": lambda: (given[:2], plot_confusions(BEFORE, AFTER, ax=given[:2])),
        "selection": lambda: (given[:2], plot_selection(SELECTION, ax=given[:2])),
        "memory": lambda: (given[0], plot_memory(PROFILES, ax=given[0])),
        "step_memory": lambda: (given[0], plot_step_memory(STEP, ax=given[0])),
        "sheet": lambda: (given[0], plot_sheet(SHEET, ax=given[0])),
    }
    axes, returned = calls[name]()
    assert list(np.ravel(returned)) == list(np.ravel(axes))
    assert len(pyplot.get_fignums()) == 1


def legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def ticks(axis: Any) -> list[str]:
    return [text.get_text() for text in axis.get_ticklabels()]


def test_bars_of_a_selection_tell_apart_what_came_of_the_candidates():
    loss, accuracy = plot_selection(SELECTION)
    names = [text.get_text() for text in loss.figure.legends[0].get_texts()]
    assert names == ["before", "chosen", "cannot be told apart", "worse (95 %)"]
    assert ticks(loss.xaxis) == ["B1", "B2", "B3"]
    assert loss.get_ylabel() == "loss on the held-out images (nats)"
    assert accuracy.get_ylabel() == "accuracy on the held-out images"
    assert loss.figure.get_suptitle() == (
        "after the trial run, 200 held-out images, 2 seeds; chosen: B2"
    )
    ends = [list(line.get_ydata()) for line in loss.lines[:2]]
    assert np.allclose(ends, [[1.302, 1.1, 1.052], [1.498, 1.1, 1.248]], atol=1e-4)
    assert len(accuracy.lines) == 1  # the criterion alone has intervals


def test_two_confusion_matrices_have_one_scale():
    before, after = plot_confusions(BEFORE, AFTER)
    assert before.get_title() == "before: accuracy 0.500"
    assert after.get_title() == "after: accuracy 0.900"
    assert before.images[0].get_clim() == after.images[0].get_clim() == (0, 1)
    other = pmt.Confusion(AFTER.matrix, ("a", "b", "c"))
    message = "before has the classes ant, bee, cat and after a, b, c: compare models on the same"
    with pytest.raises(ValueError, match=message):
        plot_confusions(BEFORE, other)


def test_names_are_shown_as_they_are(tmp_path):
    names = (r"$\\foo$", "a_b", "_c")
    save_plot(pmt.Confusion(AFTER.matrix, names).plot(), tmp_path / "confusion.png")


def test_profiles_of_one_name_have_a_bar_each():
    ax = plot_memory([PROFILES[0], PROFILES[0]])
    assert ticks(ax.yaxis) == ["default", "default"]
    assert sorted({bar.get_y() for bars in ax.containers for bar in bars}) == [-0.4, 0.6]


def test_memory_is_stacked_by_part():
    ax = plot_memory(PROFILES, limits=(64,))
    assert ticks(ax.yaxis) == ["default", "bp_int8"]
    assert ax.get_xlabel() == "peak memory (KB)"
    assert legend(ax) == [
        *("trainable weights", "trainable biases", "activations", "input", "saved activations"),
        *("clamp masks", "activation gradients", "loss tables, seeds"),
    ]
    ends = [max(bar.get_x() + bar.get_width() for bar in bars) for bars in ax.containers]
    assert max(ends) == pytest.approx(268_000 / 1024)


def test_the_arena_is_drawn_by_address_and_by_what_lies_there():
    ax = plot_step_memory(STEP)
    assert ax.get_title("left") == "default, the arena: 9.0 KB"
    assert ticks(ax.xaxis) == ["forward", "query of conv2", "forward"]
    assert legend(ax) == [
        *("trained weights and biases", "input", "activations", "activations kept for queries"),
        *("activations of a query", "scratch of kernels"),
    ]
    kept = ax.collections[3].get_paths()[0].vertices
    assert kept.min(axis=0).tolist() == [3, 6]
    assert kept.max(axis=0).tolist() == [6, 8]


def test_a_sheet_names_rows_and_columns():
    ax = plot_sheet(SHEET)
    assert ticks(ax.yaxis) == ["fog", "contrast\nx"]
    assert ticks(ax.xaxis) == ["0: ant\noriginal", "\nseverity 1", "\n3", "1: bee\nseverity 1"]
    picture = ax.images[0].get_array()
    assert picture.shape == (17, 35, 3)
    assert picture[:8, :8].tolist() == TILE.tolist()
    assert np.all(picture[9:, 9:17] == 255)  # a tile that is not there


@pytest.mark.parametrize("draw", [run().plot, BEFORE.plot])
def test_one_axes_is_not_several(draw):
    grid = pyplot.subplots(1, 2)[1]
    for ax, shown in ((grid, "ndarray"), (list(grid), "list"), ("left", "str")):
        with pytest.raises(TypeError) as error:
            draw(ax)
        assert str(error.value) == (
            f"ax is {shown}: must be one Axes of matplotlib; of several, give the one to draw on"
        )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot_selection(SELECTION, ax=[None]), "ax has 1 axes and the plot 2 panels"),
        (
            lambda: save_plot(None, "plot.gif"),
            "path = plot.gif: the suffix must be .png, .svg or .pdf",
        ),
        (
            lambda: plot_sheet(Sheet("many", (Row("a", [TILE] * 501),), (Group("", ("",) * 501),))),
            "the sheet has 1 row of 501 images of 8x8 pixels: at most 500 rows and images a row",
        ),
    ],
)
def test_bad_input_is_an_error_that_helps(call, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        call()
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_same_plot_gives_the_same_file(suffix, tmp_path):
    files = [tmp_path / f"{name}{suffix}" for name in ("a", "b")]
    for file in files:
        save_plot(run().plot(), file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert pyplot.get_fignums() == []


def test_plots_go_into_subfigures(tmp_path):
    left, right = pyplot.figure().subfigures(1, 2)
    run().plot(left.add_subplot())
    path = tmp_path / "both.png"
    save_plot(BEFORE.plot(right.add_subplot()), path)
    assert path.read_bytes()[:4] == b"\x89PNG"


def test_a_run_without_a_figure_is_an_empty_plot():
    ax = pmt.RunResult(residual_network(), [{"epoch": 1, "changed": 3}]).plot()
    assert list(ax.lines) == []
    assert ax.get_ylim()[0] == 0.0


def test_28_lines_and_bars_differ():
    lines = [line_style(place) for place in range(28)]
    assert len({(line["color"], str(line["linestyle"])) for line in lines}) == 28
    assert len({(line["marker"], str(line["linestyle"])) for line in lines}) == 28
    assert len({(line["color"], line["marker"], line["fillstyle"]) for line in lines}) == 28
    bars = [bar_style(place) for place in range(28)]
    assert len({(bar["facecolor"], bar["hatch"]) for bar in bars}) == 28
    assert COLORS["blue"] == lines[0]["color"] == "#0072B2"
