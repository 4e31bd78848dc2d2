"""Plots of the lab: what they show, and how they look."""

from pathlib import Path

import numpy as np
import pytest
from pictures import check_picture
from plots.test_plots import legend, run

from pmt.plots import save_plot
from pmt_lab.plots import plot_cosines, plot_curves
from pmt_lab.report import Curve, results_curve
from pmt_lab.studies.gradient_quality import GradientStudy, Quality

pytest.importorskip("matplotlib").use("Agg")
from matplotlib import pyplot  # noqa: E402

GOLDEN = Path(__file__).parent / "golden" / "plots"


@pytest.mark.parametrize("name", ["curves", "cosines"])
def test_plots_look_as_they_did(name, tmp_path):
    draw = {
        "curves": lambda: plot_curves(CURVES, images="test images"),
        "cosines": lambda: plot_cosines(STUDY),
    }
    check_picture(draw[name], name, tmp_path, GOLDEN)


CURVES = {
    "paper": Curve(
        np.array([1.0, 10.0, 100.0]), np.array([[1.9, 1.5, 1.2], [1.8, 1.3, 1.1]]), before=2.0
    ),
    "default": Curve(np.array([1.0, 10.0]), np.array([[1.0, 0.8]]), before=2.0),
}


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
    with pytest.raises(ValueError, match="ax must be 2 of matplotlib's Axes"):
        plot_cosines(STUDY, ax=[given] * 3)
    with pytest.raises(ValueError, match="ax must be 1 of matplotlib's Axes"):
        plot_cosines(STUDY, ax=3)


def test_names_are_shown_as_they_are(tmp_path):
    ax = plot_curves({r"$\\foo$": CURVES["paper"], "_mine": CURVES["paper"]})
    assert [text.strip() for text in legend(ax)][:2] == [r"\$\\foo\$", "_mine"]
    save_plot(ax, tmp_path / "curves.png")


@pytest.mark.parametrize("name", ["curves", "cosines"])
def test_a_plot_on_given_axes_makes_no_figure(name):
    given = pyplot.subplots(1, 3)[1]
    draw = {
        "curves": lambda: (given[0], plot_curves(CURVES, ax=given[0])),
        "cosines": lambda: (given[:2], plot_cosines(STUDY, ax=given[:2])),
    }
    axes, returned = draw[name]()
    assert list(np.ravel(returned)) == list(np.ravel(axes))
    assert len(pyplot.get_fignums()) == 1
