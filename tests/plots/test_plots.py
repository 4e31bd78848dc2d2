"""Plots: what is on them, and how they look, against stored pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from networks import residual_network
from pictures import check_picture

import pmt
from pmt._util.plots import COLORS, bar_style, line_style
from pmt.protocol.comparison import PairedMargin
from pmt.research.benchmark.forward import OpTimes
from pmt.research.benchmark.timing import Machine
from pmt.research.plots import (
    plot_confusions,
    plot_cosines,
    plot_curves,
    plot_errors,
    plot_memory,
    plot_selection,
    plot_sheet,
    plot_speed,
    plot_step_memory,
    save_plot,
)
from pmt.research.profile import Profile
from pmt.research.report import Curve, results_curve
from pmt.research.sheets import Group, Row, Sheet
from pmt.research.step_memory import Buffer, StepMemory, Stretch
from pmt.research.studies.gradient_quality import GradientStudy, Quality
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

CURVES = {
    "paper": Curve(
        np.array([1.0, 10.0, 100.0]), np.array([[1.9, 1.5, 1.2], [1.8, 1.3, 1.1]]), before=2.0
    ),
    "default": Curve(np.array([1.0, 10.0]), np.array([[1.0, 0.8]]), before=2.0),
}


def candidate(name: str, loss: float, accuracy: float, margin: float) -> Candidate:
    zero = PairedMargin(0.0, 0.0)
    found = PairedMargin(margin, 0.05) if margin else zero
    return Candidate(name, 100, 10, 1000, 500, 20, 10_000, loss, accuracy, found, zero)


CANDIDATES = (
    candidate("B1", 1.40, 0.48, 0.30),
    candidate("B2", 1.10, 0.61, 0.0),
    candidate("B3", 1.15, 0.62, 0.05),
)
SELECTION = Selection("loss", CANDIDATES[1], CANDIDATES, 1.6, 0.4, 200, 2)

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


def quality(layer: str, estimator: str, queries: int, cosine: float) -> Quality:
    return Quality(
        *(layer, estimator, "weight_perturbation", queries, 1000, 400),
        *(cosine, 0.02, 3.0 / queries, 0.1, cosine + 0.03, 2.5 / queries, 1.0, 8, 10, 100),
    )


STUDY = GradientStudy(
    tuple(
        quality(layer, estimator, queries, cosine * queries / (16 if estimator == "weight" else 20))
        for layer, cosine in (("conv1", 0.1), ("conv2", 0.3), ("head", 0.8))
        for estimator in ("weight", "node")
        for queries in (4, 16)
    ),
    images=16,
)

TILE = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
SHEET = Sheet(
    "two images",
    (Row("fog", [TILE, TILE // 2, TILE // 4, TILE]), Row("contrast", [TILE, None, TILE // 3], "x")),
    (Group("0: ant", ("original", "severity 1", "severity 3")), Group("1: bee", ("severity 1",))),
)


def op(name: str, group: str, macs: int, microseconds: float) -> OpTimes:
    times = {"name": name, "kind": "conv2d", "group": group, "window": "3x3", "shape": ""}
    return OpTimes(**times, macs=macs, microseconds={1: microseconds, 100: microseconds / 2})


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
    "curves": lambda: plot_curves(CURVES, images="test images"),
    "selection": lambda: plot_selection(SELECTION),
    "memory": lambda: plot_memory(PROFILES),
    "step_memory": lambda: plot_step_memory(STEP),
    "cosines": lambda: plot_cosines(STUDY),
    "errors": lambda: plot_errors(STUDY),
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
        "curves": lambda: (given[0], plot_curves(CURVES, ax=given[0])),
        "selection": lambda: (given[:2], plot_selection(SELECTION, ax=given[:2])),
        "memory": lambda: (given[0], plot_memory(PROFILES, ax=given[0])),
        "step_memory": lambda: (given[0], plot_step_memory(STEP, ax=given[0])),
        "cosines": lambda: (given[:2], plot_cosines(STUDY, ax=given[:2])),
        "errors": lambda: (given, plot_errors(STUDY, ax=given)),
        "sheet": lambda: (given[0], plot_sheet(SHEET, ax=given[0])),
    }
    axes, returned = calls[name]()
    assert list(np.ravel(returned)) == list(np.ravel(axes))
    assert len(pyplot.get_fignums()) == 1


def legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def ticks(axis: Any) -> list[str]:
    return [text.get_text() for text in axis.get_ticklabels()]


def test_curves_say_what_they_show_and_on_which_images():
    ax = plot_curves(CURVES, images="test images")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("GMAC", "loss on the test images (nats)")
    assert ax.get_xscale() == "log"
    assert ax.get_ylim() == (0.0, 2.5)
    assert legend(ax) == ["paper", "default", "before training"]
    # Two seeds: 12.7062 standard errors of 0.1 around 1.4. One seed has no interval.
    assert len(ax.collections) == 1
    low = ax.collections[0].get_paths()[0].vertices[:, 1].min()
    assert low == pytest.approx(0.1294, abs=1e-4)
    ranges = plot_curves(CURVES, measure="accuracy", band="range")
    assert ranges.get_ylabel() == "accuracy on the held-out images"
    assert len(ranges.collections) == 2
    assert ranges.collections[0].get_paths()[0].vertices[:, 1].min() == 1.1


@pytest.mark.parametrize(
    ("gmacs", "labels"),
    [
        ((1.0, 1.3), ["1", "1.1", "1.2", "1.3"]),
        ((200.0, 3000.0), ["200", "500", "1,000", "2,000"]),
        ((2.0, 70.0), ["2", "5", "10", "20", "50"]),
        ((50.0, 240_000.0), ["100", "1,000", "10,000", "100,000"]),
    ],
)
def test_labels_of_the_work_are_numbers_that_have_room(gmacs, labels):
    ax = plot_curves({"paper": Curve(np.array(gmacs), np.array([[2.0, 1.0]]), None)})
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    shown = [t.get_text() for t in ax.get_xticklabels() if low <= t.get_position()[0] <= high]
    assert shown == labels


def test_points_that_leave_the_plot_are_marked_at_its_edge():
    curve = Curve(np.array([1.0, 2.0, 3.0]), np.array([[9.0, 2.0, 5.0]]), 2.0)
    ax = plot_curves({"diverges": curve})
    assert ax.get_ylim() == (0.0, 2.5)
    marks = ax.get_lines()[-1]
    assert (marks.get_xdata().tolist(), marks.get_ydata().tolist()) == ([1.0, 3.0], [2.5, 2.5])


def test_marks_move_with_the_edge_where_curves_are_added():
    gmacs = np.array([1.0, 10.0, 100.0])
    ax = plot_curves({"diverges": Curve(gmacs, np.array([[2.0, 4.0, 9.0]]), before=2.0)})
    plot_curves({"starts lower": Curve(gmacs, np.array([[1.0, 0.9, 0.8]]), before=1.2)}, ax=ax)
    top = ax.get_ylim()[1]
    assert top == pytest.approx(1.5)
    marks = [line for line in ax.get_lines() if line.get_linestyle() == "None"]
    assert marks.pop(0).get_label() == "above the plot"
    assert [(*line.get_xdata(), *line.get_ydata()) for line in marks] == [
        (1.0, 10.0, 100.0, top, top, top)
    ]


def test_the_curve_of_results_is_over_their_seeds():
    results = [run(), run()]
    curve = results_curve(results)
    assert curve.gmacs.tolist() == [1, 2, 3, 4]
    assert curve.values.tolist() == [[1.8, 0.9, 0.6, 0.45]] * 2
    assert curve.before == 2.0
    assert results_curve(results, "valid_accuracy").before is None
    assert results_curve(results, "other") is None


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
    ax = plot_curves({r"$\\foo$": CURVES["paper"], "_mine": CURVES["paper"]})
    assert [text.strip() for text in legend(ax)][:2] == [r"\$\\foo\$", "_mine"]
    save_plot(ax, tmp_path / "curves.png")
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


def test_cosines_are_by_layer_at_the_most_queries():
    dimensions, cosines = plot_cosines(STUDY)
    assert dimensions.get_yscale() == "log"
    assert legend(dimensions) == ["weights", "nodes"]
    assert legend(cosines) == ["weight", "node"]
    assert cosines.get_ylabel() == "cosine with the exact gradient"
    assert cosines.containers[0].lines[0].get_ydata().tolist() == [0.1, 0.3, 0.8]
    assert cosines.figure.get_suptitle() == (
        "16 queries, 16 images; crosses: theory without rounding"
    )
    with pytest.raises(ValueError, match="queries=5: the study has estimates of 4, 16 queries"):
        plot_cosines(STUDY, queries=5)


def test_cosines_alone_take_one_axes():
    given = pyplot.subplots()[1]
    (cosines,) = plot_cosines(STUDY, ax=given)
    assert cosines is given
    assert legend(cosines) == ["weight", "node"]
    with pytest.raises(ValueError, match="ax has 3 axes and the plot 2 panels"):
        plot_cosines(STUDY, ax=[given] * 3)
    with pytest.raises(TypeError, match="ax is int: must be one Axes of matplotlib"):
        plot_cosines(STUDY, ax=3)


def test_errors_have_a_panel_a_layer():
    axes = plot_errors(STUDY)
    assert [ax.get_title() for ax in axes] == ["conv1", "conv2", "head"]
    assert axes[0].lines[0].get_ydata().tolist() == [0.75, 0.1875]


def test_a_sheet_names_rows_and_columns():
    ax = plot_sheet(SHEET)
    assert ticks(ax.yaxis) == ["fog", "contrast\nx"]
    assert ticks(ax.xaxis) == ["0: ant\noriginal", "\nseverity 1", "\n3", "1: bee\nseverity 1"]
    picture = ax.images[0].get_array()
    assert picture.shape == (17, 35, 3)
    assert picture[:8, :8].tolist() == TILE.tolist()
    assert np.all(picture[9:, 9:17] == 255)  # a tile that is not there


def test_speed_has_bars_and_a_roofline():
    model = residual_network()
    ops = [op(f"op{i}", "convolutions", o["macs"], 10.0) for i, o in enumerate(model.core.ops())]
    machine = Machine("a processor", "vnni", 2, "vpdpbusd", {1: 50.0, 2: 90.0}, 50.0, "1", "")
    bars, roof = plot_speed(model, machine, ops)
    assert legend(bars) == ["1 image", "100 images"]
    assert (roof.get_xscale(), roof.get_ylabel()) == ("log", "GMAC/s, 100 images")
    assert bars.figure.get_suptitle() == "a processor, kernels vnni, 1 thread"


@pytest.mark.parametrize("draw", [run().plot, BEFORE.plot, lambda ax: plot_curves(CURVES, ax=ax)])
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
        (lambda: plot_curves({}), "curves is empty: there is nothing to draw"),
        (
            lambda: plot_curves(CURVES, measure="los"),
            "measure='los' is unknown; choose one of loss, accuracy",
        ),
        (
            lambda: plot_curves(CURVES, band="std"),
            "band='std' is unknown; choose one of interval, range",
        ),
        (
            lambda: save_plot(None, "plot.gif"),
            "path = plot.gif: the suffix must be .png, .svg or .pdf",
        ),
        (
            lambda: Curve(np.zeros(3), np.zeros(3)),
            "values has shape (3,), gmacs (3,): a curve needs values of shape (seeds, points)",
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
        save_plot(plot_curves(CURVES), file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert pyplot.get_fignums() == []


def test_plots_go_into_subfigures(tmp_path):
    left, right = pyplot.figure().subfigures(1, 2)
    run().plot(left.add_subplot())
    path = tmp_path / "both.png"
    save_plot(plot_curves(CURVES, ax=right.add_subplot()), path)
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
