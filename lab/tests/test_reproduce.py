"""Studies of the paper: verdicts, rows, results as files, small runs, and their page."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from install_hints import install_hint
from study_data import grid_data, missing_run, run_record

from pmt._util.extras import missing_extra
from pmt_lab.cli import main
from pmt_lab.report import thinned
from pmt_lab.reproduce import STUDIES, find_study, results
from pmt_lab.reproduce.drawing import draw_curves, draw_sheet
from pmt_lab.reproduce.figure_7 import loss_rows
from pmt_lab.reproduce.page import page, write_pages
from pmt_lab.reproduce.runs import GRIDS, Found, accuracy_row, find, read_study_grid, small
from pmt_lab.reproduce.study import (
    ACCURACY,
    COMPUTE,
    MEMORY,
    Context,
    Row,
    at_least,
    published,
    verdict,
)

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "lab" / "results"
PAGES = sorted((ROOT / "lab" / "pages").glob("reproduction*.md"))
# Drawn by plot_curves, which needs a finished run.
CURVES = ("learning-rate-scaling", "estimators", "bp-free-methods", "bp-free-methods-same-layers")
TRAINING = [one.name for one in STUDIES.values() if one.sweeps]


@pytest.mark.parametrize(
    ("ours", "theirs", "quantity", "interval", "expected"),
    [
        (68.0, 66.0, ACCURACY, None, "reproduced"),
        (64.0, 66.0, ACCURACY, None, "reproduced"),
        (70.0, 66.0, ACCURACY, (65.0, 75.0), "reproduced"),
        (70.0, 66.0, ACCURACY, (68.0, 72.0), "better"),
        (60.0, 66.0, ACCURACY, (58.0, 62.0), "not reproduced"),
        (math.nan, 66.0, ACCURACY, None, "not reproduced"),
        (None, 66.0, ACCURACY, None, "not run"),
        (101.0, 100.0, COMPUTE, None, "reproduced"),
        (99.0, 100.0, COMPUTE, None, "reproduced"),
        (102.0, 100.0, COMPUTE, None, "not reproduced"),
        (50.0, 100.0, COMPUTE, None, "better"),
    ],
)
def test_a_verdict_is_of_tolerance_interval_and_side(ours, theirs, quantity, interval, expected):
    assert verdict(ours, theirs, quantity, interval) == expected


def test_a_lower_bound_is_contradicted_only_from_above():
    said = [at_least("memory", ours, 100.0, MEMORY).verdict for ours in (50.0, 99.5, 120.0)]
    assert said == ["lower bound", "reproduced", "not reproduced"]


def test_an_accuracy_row_says_what_is_missing():
    runs = [run_record("default", 30, seed=1), run_record("default", 32, seed=2)]
    data = {"grids": {"g": grid_data(runs, [missing_run("default", seed=3)])}}
    row = accuracy_row("noise", find(data, "g", method="default"), 66.0)
    assert (row.ours, row.verdict) == (77.5, "reproduced")
    # Shares 1, 0.5 and 0 of 30, 2 and 8 images: variance 0.161875, so worth 43.09 images, not 80.
    assert row.interval == pytest.approx((63.09, 87.41), abs=0.01)
    assert row.why == "1 of 3 runs missing"
    absent = accuracy_row("noise", find(data, "g", method="default", seed=3), 66.0)
    assert absent == Row("noise", None, 66.0, "%", "not run", None, "1 run missing")
    assert accuracy_row("x", find(data, "g", method="x"), 66.0).why == "no run of it"


def test_a_mean_over_corruptions_says_how_many_seeds_it_has():
    corruptions = published("cifar10c-accuracy")["corruptions"]
    once = [missing_run("paper", corruption=name) for name in corruptions]
    more = [missing_run("paper", corruption=corruptions[0], seed=seed) for seed in (2, 3)]
    data = {
        "grids": {
            "cifar10c_paper": grid_data([], once),
            "cifar10c_paper_seeds": grid_data([], more),
            "cifar10c_default": grid_data(
                [],
                [
                    missing_run("default", corruption=name, seed=seed)
                    for name in corruptions
                    for seed in (1, 2, 3)
                ],
            ),
        }
    }
    (paper, default) = [
        row
        for row in STUDIES["cifar10c-accuracy"].compare(data, published("cifar10c-accuracy"))
        if " runs missing" in row.why
    ]
    assert paper.what == "paper's method, rate 0.001: mean of 12 corruptions"
    assert paper.why == "the first of 3 seeds of gaussian_noise; 12 runs missing"
    assert default.what == "unprepared default, 2.4e12 MACs: mean of 12 corruptions"
    assert default.why == "3 seeds of each corruption; 36 runs missing"


@pytest.mark.parametrize("name", [name for name in STUDIES if name not in CURVES])
def test_a_study_is_drawn_on_one_axes(name):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    data = results.load(name, RESULTS)["data"]
    _, grid = pyplot.subplots(1, 2)
    assert STUDIES[name].plot(data, ax=grid[0]) is grid[0]
    for several, kind in ((grid, "ndarray"), ([grid[0]], "list")):
        with pytest.raises(TypeError, match=f"ax is {kind}: must be one Axes of matplotlib; of"):
            STUDIES[name].plot(data, ax=several)


def test_corruptions_weigh_alike_in_their_mean():
    corruptions = published("cifar10c-accuracy")["corruptions"]
    once = [run_record("paper", 20, corruption=name) for name in corruptions]
    more = [run_record("paper", 40, corruption=corruptions[0], seed=seed) for seed in (2, 3)]
    grids = {"cifar10c_paper": grid_data(once), "cifar10c_paper_seeds": grid_data(more)}
    rows = STUDIES["cifar10c-accuracy"].compare({"grids": grids}, published("cifar10c-accuracy"))
    accuracy = {row.what: row.ours for row in rows}
    assert accuracy["paper's method, rate 0.001: mean of 12 corruptions"] == 50.0
    assert accuracy["paper's method, rate 0.001: gaussian_noise"] == pytest.approx(250 / 3)


def test_a_sheet_has_a_number_for_each_run_and_marks_published_lines():
    pytest.importorskip("matplotlib.pyplot")
    lines = {"ours": [42.71, None], "published: ours": [66.8, 78.3], "not run": [None, None]}
    ax = draw_sheet(lines, ["gaussian_noise", "fog"], ["published: ours"], whole=["fog"])
    assert [text.get_text() for text in ax.texts] == ["42.7", "–", "66.8", "78"]
    assert ax.get_xlabel() == "test accuracy (%); –: not run"
    labels = ax.get_yticklabels()
    assert [label.get_text() for label in labels] == ["ours", "published: ours"]
    assert [label.get_style() for label in labels] == ["normal", "italic"]


def test_lines_of_the_same_run_are_one():
    pytest.importorskip("matplotlib.pyplot")
    curve = [(0, 3.0), (10**9, 2.0)]
    ax = draw_curves({"weight": {"curve": curve}, "paper": {"curve": [*curve]}})
    assert ax.get_legend().get_texts()[0].get_text() == "weight = paper"


def test_the_rate_that_was_chosen_and_the_share_of_forwards_are_said():
    tuning = {"learning_rate": 3e-7, "at_edge": True, "factor": 0.3, "trials": []}
    data = {
        "grids": {
            "bp_free_methods": grid_data(
                [run_record("mezo", 10, tuning=tuning)], [missing_run("deepzero_sparse")]
            ),
            "cifar10c_paper": grid_data([run_record("paper", 26, forwards=20_000_000, epochs=50)]),
            "cifar10c_released": grid_data(
                [run_record("released", 24, forwards=10_000_000, epochs=50)],
                [missing_run("released, nodes alone")],
            ),
        }
    }
    rows = STUDIES["bp-free-methods"].compare(data, published("bp-free-methods"))
    assert [(row.what, row.ours, row.theirs, row.verdict) for row in rows] == [
        ("MeZO: forwards per step", 2.0, 2, "reproduced"),
        ("MeZO: accuracy", 25.0, 18.33, "reproduced"),
        ("DeepZero, a tenth of the coordinates: forwards per step", None, 49457, "not run"),
        ("DeepZero, a tenth of the coordinates: accuracy", None, 52.78, "not run"),
        ("paper's method: forwards per step", 400.0, 400, "reproduced"),
        ("paper's method: accuracy", 65.0, 66.78, "reproduced"),
        ("paper's method, released settings: accuracy", 60.0, 66.78, "reproduced"),
        (
            "paper's method, released, nodes alone, stochastic rounding: accuracy",
            None,
            66.78,
            "not run",
        ),
        ("preparation alone: accuracy", None, None, "not run"),
        ("default, 2.4e12 MACs: accuracy", None, 66.78, "not run"),
        ("back-propagation in float32, unprepared: accuracy", None, None, "not run"),
        ("back-propagation in float32, after the preparation: accuracy", None, None, "not run"),
    ]
    assert rows[1].why == (
        "2e+03 forwards, 0.01 % of the published 2e+07; rate 3e-07, at the edge of those tried"
    )
    assert rows[5].why == "all 2e+07 forwards"
    assert rows[6].why == "1e+07 forwards, 50 % of the published 2e+07"


def test_the_gain_of_chosen_blocks_is_paired_by_image():
    """B1 gets 30 of 40 images right and B2 20 of these; a trial prefers B2.

    B3 is better than both on the test images, and no better on those held out than B1.
    """
    runs, trials = [], []
    for block, right, loss in (("B1", 30, 2.0), ("B2", 20, 1.0), ("B3", 34, 3.0), ("B4", 4, 3.0)):
        for corruption in published("cifar10c-accuracy")["corruptions"]:
            axes = {"corruption": corruption, "layers": f"{block},head"}
            runs.append(run_record("default", right, loss=0.5 if block == "B1" else 0.7, **axes))
            trials.append(run_record("default", 8, loss=loss, **axes))
    grids = {"blocks": grid_data(runs), "block_selection": grid_data(trials)}
    name = "fixed-or-adaptive-blocks"
    rows = STUDIES[name].compare({"grids": grids}, published(name))
    row = next(row for row in rows if row.what == "chosen less the best fixed block: noise")
    assert (row.ours, row.verdict, row.why) == (
        -25.0,
        "not reproduced",
        "the best is B1, by held-out loss",
    )
    # 1.96 * 100 * sqrt(40 / 39 * 0.25 * 0.75 / 40)
    assert row.interval == pytest.approx((-38.59, -11.41), abs=0.01)


def compared_losses(*runs):
    return loss_rows({"grids": {"g": grid_data(list(runs))}}, ("g",), {"b": ("a", "slower than a")})


def test_curves_show_which_method_ends_lower():
    rows = compared_losses(run_record("a", 8, loss=1.0), run_record("b", 8, loss=1.25))
    assert [(row.what, row.ours, row.theirs, row.verdict, row.why) for row in rows] == [
        ("a: lowest loss", 1.0, None, "not published", ""),
        ("b: lowest loss", 1.25, None, "not published", ""),
        ("b less a", 0.25, "slower than a", "reproduced", ""),
    ]


@pytest.mark.parametrize(
    ("losses", "edge", "why"),
    [
        ((1.0, 1.0), False, "the same run: the estimators of all layers are the same here"),
        ((1.5, 1.0), True, "at the edge of the rates tried: a"),
        ((1.0, 1.04), False, "within 0.05 nats, which one seed does not tell apart"),
    ],
)
def test_a_curve_that_ends_the_other_way_says_what_it_may_be_due_to(losses, edge, why):
    tuning = {"learning_rate": 1.0, "at_edge": edge, "factor": 1.0, "trials": []}
    one, other = losses
    row = compared_losses(
        run_record("a", 8, loss=one, tuning=tuning), run_record("b", 8, loss=other)
    )[-1]
    assert (row.verdict, row.why) == ("not reproduced", why)


def test_differences_of_losses_are_paired_by_seed():
    runs = [
        run_record(name, 8, loss=loss + start, seed=seed)
        for name, start in (("a", 1.0), ("b", 1.1))
        for seed, loss in ((1, 0.0), (2, 0.5), (3, 0.7))
    ]
    first, _, row = compared_losses(*runs)
    assert first.interval == pytest.approx((0.504, 2.296), abs=1e-3)
    assert row.interval == pytest.approx((0.1, 0.1))
    assert (round(row.ours, 3), row.verdict) == (0.1, "reproduced")
    row = compared_losses(*runs[:3], run_record("b", 8, loss=2.0, seed=1), *runs[4:])[-1]
    assert (row.verdict, row.why) == ("not reproduced", "3 seeds do not tell them apart")


def test_a_curve_keeps_its_ends():
    curve = [(macs, 1.0 / (macs + 1)) for macs in range(100)]
    kept = thinned(curve)
    assert len(kept) == 40
    assert kept[0] == [0, 1.0]
    assert kept[-1] == [99, 0.01]
    assert thinned(curve[:3]) == [[0, 1.0], [1, 0.5], [2, 1 / 3]]


def test_data_that_is_missing_is_named_with_its_remedy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PMT_DATA", str(tmp_path))
    context = Context(tmp_path)
    with pytest.raises(FileNotFoundError) as error:
        context.need_cifar10()
    assert str(error.value) == (
        "cifar-10-batches-bin is not found; fetch it with `pmt download cifar10`, or give "
        "--data the folder that holds it"
    )
    with pytest.raises(FileNotFoundError, match=r"mcunet-5fps.pkl is not found; take it from"):
        context.need_mcunet()
    given = Context(tmp_path, data=tmp_path)
    with pytest.raises(FileNotFoundError) as error:
        given.need_cifar10()
    assert str(error.value).startswith(f"cifar-10-batches-bin is not in --data {tmp_path}; fetch")
    (tmp_path / "food10").mkdir()
    assert given.fine_grained() == {"food": tmp_path / "food10"}


def test_the_registry_and_the_published_numbers():
    with pytest.raises(ValueError, match="'estimator' is not a study; did you mean 'estimators'"):
        find_study("estimator")
    table = published("cifar10c-accuracy")
    assert table["improvement_over_int8"] == 6.4
    lists = [values for name, values in table.items() if name != "improvement_over_int8"]
    assert {len(values) for values in lists} == {12}
    assert published("no-such-study") == {}


@pytest.mark.parametrize("path", sorted(GRIDS.glob("*.toml")), ids=lambda path: path.stem)
def test_a_small_grid_is_made_from_every_full_one(path):
    full = read_study_grid(path.stem)
    made = small(full)
    assert made.model == {"path": "fashion_mnist_dscnn"}
    assert made.data["path"] == "bundled"
    assert made.macs == (500_000_000 if full.macs else 0)
    assert (len(made.corruptions), len(made.seeds), made.tuning) == (1, 1, None)
    assert {table.name for table in made.methods} <= {table.name for table in full.methods}


@pytest.mark.parametrize("name", TRAINING)
def test_every_study_that_trains_is_done_at_small_scale(name, tmp_path, capsys):
    pytest.importorskip("torch")
    out, kept = tmp_path / "runs", tmp_path / "results"
    command = ["reproduce", name, "--scale", "small", "--out", str(out), "--results", str(kept)]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert STUDIES[name].title in text
    assert " runs left\n" in text
    first = results.load(name, kept)
    assert all(grid["runs"] and not grid["missing"] for grid in first["data"]["grids"].values())
    # The same command goes on from there: nothing is left, and the figures are the same.
    assert main(command) == 0
    assert " runs left\n" not in capsys.readouterr().out
    assert results.load(name, kept)["data"] == first["data"]
    # So does a machine that has the result alone; each run says where it was done.
    elsewhere = [*command[:-3], str(tmp_path / "elsewhere"), *command[-2:]]
    assert main(elsewhere) == 0
    assert " runs left\n" not in capsys.readouterr().out
    for grid, joined in zip(*map(_grids, (first, results.load(name, kept))), strict=True):
        assert joined["runs"] == grid["runs"]  # nothing was added, so that the file is as it was
    # A run that is missing in it is done, and the others say where they are from.
    (name_of_grid, whole), *_ = first["data"]["grids"].items()
    part = {**whole, "runs": whole["runs"][1:]}
    results.save({**first, "data": {"grids": {**first["data"]["grids"], name_of_grid: part}}}, kept)
    assert main(elsewhere) == 0
    assert f"{name_of_grid}: 1 of 1 runs left\n" in capsys.readouterr().out
    source = {key: first[key] for key in ("commit", "date", "machine")}
    done, *others = results.load(name, kept)["data"]["grids"][name_of_grid]["runs"]
    assert done["after"] == whole["runs"][0]["after"]
    assert others == [{**source, **run} for run in whole["runs"][1:]]
    rows = STUDIES[name].compare(first["data"], published(name))
    trained = [row for row in rows if name != "sparse-cost" or row.unit == "%"]  # costs are counted
    assert {row.verdict for row in trained} <= {"not published", "not run"}
    assert all(row.ours is not None for row in rows if row.verdict == "not published")


def _grids(result):
    return result["data"]["grids"].values()


def test_a_row_says_that_runs_were_taken_back_to_their_start():
    back = {**run_record("paper", 8), "steps": 5, "chosen_state": "start"}
    kept = {**back, "chosen_state": "epoch"}
    one, both = (
        accuracy_row("x", Found(runs, (), False), 50.0) for runs in ((back,), (back, kept))
    )
    assert one.why == (
        "reverted to the original model: no epoch is clearly better on held-out images"
    )
    assert both.why == "1 of 2 runs were reverted to the original model"


def test_what_is_finished_is_collected(tmp_path, capsys):
    out = ["--scale", "small", "--out", str(tmp_path)]
    collect = ["reproduce", "estimators", "--collect", *out]
    assert main([*collect, "--results", str(tmp_path)]) == 0
    assert "no run of it" not in capsys.readouterr().out
    found = results.load("estimators", tmp_path)["data"]["grids"]["estimators"]
    assert (len(found["runs"]), len(found["missing"])) == (0, 6)


def test_nothing_is_measured_where_finished_runs_are_collected(tmp_path, capsys):
    command = ["reproduce", "memory-formulas", "--scale", "small", "--out", str(tmp_path)]
    kept = tmp_path / "results"
    collect = [*command, "--collect", "--results", str(kept)]
    assert main(collect) == 0
    folder = tmp_path / "small" / "memory-formulas"
    assert capsys.readouterr().out == (
        "Table 3: Peak memory by formula\n"
        f"memory-formulas: nothing is finished in {folder}; the same without --collect measures "
        "it\n"
    )
    assert not kept.exists()
    assert main(command) == 0
    measured = results.load("memory-formulas", folder)
    assert main(collect) == 0
    assert results.load("memory-formulas", kept) == measured


def test_a_study_that_cannot_be_done_is_named_and_the_next_one_follows(
    tmp_path, capsys, monkeypatch
):
    def missing(*given):
        raise missing_extra("the exact gradient needs torch", "torch")

    for name in ("gradient-cosine", "estimators"):
        monkeypatch.setitem(STUDIES, name, replace(STUDIES[name], measure=missing))
    names = ["gradient-cosine", "estimators", "memory-formulas"]
    command = ["reproduce", *names, "--scale", "small", "--out", str(tmp_path)]
    need = f"the exact gradient needs torch: {install_hint('torch')}"
    complaint = (
        f"pmt-lab: error: gradient-cosine: {need}\n"
        f"pmt-lab: error: estimators: {need}\n"
        "pmt-lab: error: not done: gradient-cosine, estimators\n"
    )
    assert main(command) == 1
    told = capsys.readouterr()
    assert "memory-formulas: " in told.out
    assert told.err == complaint
    assert main(["reproduce", "estimators", "--scale", "small", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"pmt-lab: error: {need}\n"


def test_a_run_that_failed_stays_in_the_table():
    failed = {**missing_run("bp_fp32"), "error": "training needs torch"}
    grids = {"cifar10c_backprop": grid_data([], [failed])}
    small_grids = {name: {**grid, "model": "fashion_mnist_dscnn"} for name, grid in grids.items()}
    for data, theirs in (({"grids": grids}, 73.89), ({"grids": small_grids}, None)):
        rows = STUDIES["cifar10c-accuracy"].compare(data, published("cifar10c-accuracy"))
        (row,) = [row for row in rows if "failed" in row.why]
        assert row.what == "all layers, float32: gaussian_noise"
        assert (row.theirs, row.verdict) == (theirs, "not run")
        assert row.why == "1 run missing; failed: training needs torch"


def test_the_command_refuses_what_does_not_go_together(tmp_path, capsys):
    def complaint(*arguments: str) -> str:
        assert main(["reproduce", *arguments]) == 2
        return capsys.readouterr().err

    alone = "pmt-lab: error: give one or more studies, or --all; --list shows which there are\n"
    assert complaint() == alone
    assert complaint("estimators", "--all") == alone
    assert complaint("--list", "nope") == (
        "pmt-lab: error: --list and --page show all studies; give no name\n"
    )
    assert complaint("estimators", "--write", "x.md") == (
        "pmt-lab: error: --write x.md: goes only with --page\n"
    )
    for given, message in (
        (["estimators", "--dask", "a", "--jobs", "3"], "--jobs 3: the cluster of --dask has its"),
        (["estimators", "--force"], "--force replaces a file of --results; give the folder"),
    ):
        assert complaint(*given).startswith(f"pmt-lab: error: {message}")
    (tmp_path / "x.md").write_text("no marks")
    assert complaint("--page", str(RESULTS), "--write", str(tmp_path)) == (
        f"pmt-lab: error: {tmp_path}: no Markdown file there has a line <!-- results --> or "
        "<!-- results: STUDY --> and, after it, a line <!-- end of results -->; add them\n"
    )


def copied(folder):
    for path in PAGES:
        (folder / path.name).write_text(path.read_text())


def test_the_pages_are_made_from_the_results_alone(tmp_path):
    copied(tmp_path)
    write_pages(RESULTS, tmp_path)
    for path in PAGES:
        assert (tmp_path / path.name).read_text() == path.read_text(), (
            "run `pmt-lab reproduce --page lab/results --write lab/pages`"
        )


def test_every_table_stands_once_under_its_heading_and_three_sentences():
    text = "\n".join(path.read_text() for path in PAGES)
    assert text.count("<!-- results -->") == 1
    for study in STUDIES.values():
        heading, mark = f"\n## {study.item}: {study.title}\n", f"\n<!-- results: {study.name} -->\n"
        assert text.count(heading) == text.count(mark) == 1
        prose = text[text.index(heading) + len(heading) : text.index(mark)]
        assert "<!-- results" not in prose
        assert len(re.findall(r"[.:;](?=\s)", prose)) >= 3, study.name


def test_the_verdicts_lead_to_the_sections(tmp_path):
    (tmp_path / "a.md").write_text("<!-- results -->\n<!-- end of results -->\n")
    (tmp_path / "b.md").write_text("<!-- results: estimators -->\nold\n<!-- end of results -->\n")
    (tmp_path / "c.md").write_text("as it is")
    write_pages(RESULTS, tmp_path)
    lines = (tmp_path / "a.md").read_text().splitlines()
    assert lines[:4] == [
        "<!-- results -->", "", "| in the paper |  | verdicts |", "| --- | --- | --- |",
    ]  # fmt: skip
    there = "b.md#figure-7-right-estimators-at-the-same-cost-gaussian-noise"
    assert any(line.startswith(f"| [Figure 7, right]({there}) | Estimators at") for line in lines)
    assert any(line.startswith("| Figure 7, left | Scaling of") for line in lines)
    text = (tmp_path / "b.md").read_text()
    assert text.startswith("<!-- results: estimators -->\n\n`pmt-lab reproduce estimators`: pmt ")
    assert text.endswith(" |\n\n<!-- end of results -->\n")
    assert "old" not in text
    assert (tmp_path / "c.md").read_text() == "as it is"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- results: estimator -->\n<!-- end of results -->", "names no study; see --list"),
        ("<!-- results -->\n", "needs, after it, a line <!-- end of results -->"),
        ("<!-- results -->\n<!-- results: estimators -->\n<!-- end of results -->", "after it"),
    ],
)
def test_marks_that_cannot_be_filled(tmp_path, text, message):
    (tmp_path / "a.md").write_text("<!-- results -->\n<!-- end of results -->\n")
    (tmp_path / "b.md").write_text(text)
    with pytest.raises(ValueError, match=rf"b\.md: .*{message}"):
        write_pages(RESULTS, tmp_path)
    assert (tmp_path / "a.md").read_text() == "<!-- results -->\n<!-- end of results -->\n"


def test_the_pages_need_a_result(tmp_path, capsys):
    copied(tmp_path)
    for folder in (tmp_path, tmp_path / "none"):
        assert main(["reproduce", "--page", str(folder), "--write", str(tmp_path)]) == 2
        assert capsys.readouterr().err == (
            f"pmt-lab: error: {folder}: holds no result of a study; give the folder that --results "
            "wrote to\n"
        )
    assert (tmp_path / PAGES[0].name).read_text() == PAGES[0].read_text()


def test_the_page_names_a_file_without_its_figures(tmp_path):
    path = results.save(results.record("memory-formulas", "full", {"x": 1}, 1.0), tmp_path)
    with pytest.raises(ValueError, match="missing or damaged") as error:
        page(tmp_path)
    assert str(error.value) == (
        f"{path}: figures are missing or damaged (KeyError: 'batches'); remove it, and "
        "`pmt-lab reproduce memory-formulas` makes it again"
    )


def test_a_study_without_a_result_is_said_to_be_not_run(tmp_path):
    results.save(
        results.record("fgvc-accuracy", "full", {"grids": {}, "classes": {}}, 1.0), tmp_path
    )
    lines = page(tmp_path).splitlines()
    assert lines[:2] == ["| in the paper |  | verdicts |", "| --- | --- | --- |"]
    assert "| Table 3 | Peak memory by formula | not run |" in lines
    assert "Not run: `pmt-lab reproduce estimators`." in page(tmp_path)
