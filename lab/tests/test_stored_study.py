"""A study's versioned result, as notebooks show it."""

import pytest
from study_data import grid_data, run_record

from pmt_lab.reproduce import STUDIES, results
from pmt_lab.reproduce.stored import stored
from pmt_lab.reproduce.study import Context, published

NAME = "fixed-or-adaptive-blocks"


@pytest.fixture
def small_result(tmp_path):
    data = {"grids": {}}
    results.save(results.record(NAME, "full", data, 3.0), tmp_path)
    return tmp_path


def test_a_study_without_a_result_says_how_to_get_one(tmp_path):
    found = stored(NAME, tmp_path)
    assert str(found) == (
        "Table 4: A fixed block, or one chosen for each corruption\n"
        "not run yet: `pmt-lab reproduce fixed-or-adaptive-blocks` does it"
    )
    assert found.rows == ()
    assert found.table() == ""
    assert found.plot() is None


def test_outside_a_checkout_results_are_those_installed_with_the_package(tmp_path, monkeypatch):
    package = tmp_path / "env" / "pmt_lab"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(results, "__file__", str(package / "reproduce" / "results.py"))
    with pytest.raises(FileNotFoundError, match="lab/results is not found"):
        results.results_folder()
    (package / "results").mkdir(parents=True)
    assert results.results_folder() == package / "results"
    (tmp_path / "lab" / "results").mkdir(parents=True)
    assert results.results_folder() == tmp_path / "lab" / "results"


def test_a_result_is_compared_with_the_paper(small_result):
    found = stored(NAME, small_result)
    rows = found.study.compare({"grids": {}}, published(NAME))
    assert found.rows == tuple(rows)
    first, second, *conditions = str(found).splitlines()
    assert first == "Table 4: A fixed block, or one chosen for each corruption"
    assert second.startswith("full scale, pmt 0.1.0, ")
    assert second.endswith(f": {len(rows)} not run")
    assert conditions[0] == (
        "pmt's default without its preparation and behind it, at a hundredth of the paper's"
    )
    assert found.table() == ""
    assert found.plot() is None


def test_rows_that_were_run_are_a_table_and_a_plot(tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    data = STUDIES["memory-formulas"].measure("small", Context(tmp_path))
    results.save(results.record("memory-formulas", "small", data, 1.0), tmp_path)
    found = stored("memory-formulas", tmp_path)
    first, *others = found.table().splitlines()
    assert first.split() == ["ours", "published", "unit", "verdict"]
    assert [line.partition("  ")[0] for line in others] == [
        row.what for row in found.rows if row.ours is not None
    ]
    _, ax = pyplot.subplots()
    assert found.plot(ax=ax) is ax


def test_losses_of_a_corruption_are_drawn_by_line_over_the_work(tmp_path):
    pytest.importorskip("matplotlib.pyplot")

    def grid(**losses):
        runs = [
            run_record(method, 8, corruption="fog", steps=len(own) - 1, curve=curve)
            for method, own in losses.items()
            for curve in [[[place * 10**12, loss] for place, loss in enumerate(own)]]
        ]
        return grid_data(runs)

    data = {
        "grids": {
            "cifar10c_default": grid(no_adaptation=(2.0,), default=(2.0, 1.5, 1.2)),
            "cifar10c_backprop": grid(bp_int8=(2.0, 1.0, 0.8)),
            "cifar10c_paper": grid(paper=(2.0, 1.9, 1.8)),
        }
    }
    assert stored("cifar10c-accuracy", tmp_path).plot_losses("fog") is None
    results.save(results.record("cifar10c-accuracy", "full", data, 3.0), tmp_path)
    found = stored("cifar10c-accuracy", tmp_path)
    ax = found.plot_losses("fog")
    drawn = {line.get_label(): list(line.get_ydata()) for line in ax.get_lines()}
    assert {label: losses for label, losses in drawn.items() if label != "before training"} == {
        "all layers, int8 alone": [1.0, 0.8],
        "paper's method, rate 0.001": [1.9, 1.8],
        "unprepared default, 2.4e12 MACs": [1.5, 1.2],
    }
    with pytest.raises(
        ValueError, match=r"^corruption='contrast': no run of it; choose one of fog$"
    ):
        found.plot_losses("contrast")


def test_losses_of_sparse_training_are_drawn_by_method(tmp_path):
    pytest.importorskip("matplotlib.pyplot")
    ax = stored("sparse-cost").plot_losses("gaussian_noise")
    labels = {line.get_label() for line in ax.get_lines()}
    assert {"BP, float32", "BP-free, paper's method, rate 0.001"} < labels
