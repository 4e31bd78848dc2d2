"""Tables, curves and intervals of sweeps, from folders and kept files whose figures are known."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from lab_files import check_golden
from report_files import IMAGES, RIGHT, write_result, write_results

from pmt.protocol import wilson_interval
from pmt_lab.cli import main
from pmt_lab.report import make_report, mean_curve
from pmt_lab.report.intervals import (
    accuracy_interval,
    difference_interval,
    effective_images,
    student_t,
)
from pmt_lab.report.report import number

RESULTS = Path(__file__).parents[1] / "results"
REMEDY = "give the --out of a `pmt-lab sweep`, or a file that `pmt-lab report --keep` wrote"


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    write_results(folder)
    return folder


@pytest.fixture
def kept(out, tmp_path):
    make_report([out]).keep(tmp_path / "kept.json")
    return tmp_path / "kept.json"


@pytest.fixture
def printed(capsys):
    def run(*arguments):
        assert main(["report", *map(str, arguments)]) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def refused(capsys):
    def run(*arguments):
        assert main(["report", *map(str, arguments)]) == 2
        return capsys.readouterr().err

    return run


def rows_of(text, first):
    """Cells of the rows of Markdown tables that begin with a name."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    return [cells for cells in lines if cells and cells[0].startswith(first)]


@pytest.mark.parametrize("kind", ["md", "tex", "csv"])
def test_the_table_with_a_comparison(kind, out, printed):
    check_golden(f"report.{kind}", printed(out, "--baseline", "paper", "--format", kind))


def test_rows_columns_and_range(out, printed):
    command = ("--rows", "corruption,severity", "--columns", "method", "--metric", "test_loss")
    text = printed(out, *command, "--spread", "range", "--where", "method=paper|default")
    check_golden("report_range.md", text)


def test_the_file_is_what_is_printed(out, tmp_path, printed):
    text, file = printed(out), tmp_path / "table.md"
    assert printed(out, "--out", file) == f"3 x 2 cells in {file}\n"
    assert file.read_text() == text


def test_figures_by_hand(out):
    report = make_report([out], baseline="paper")
    assert (report.rows, report.columns) == (
        ["none", "paper", "default"],
        ["gaussian_noise", "fog"],
    )
    cells = report.cells
    cell = cells.loc["paper", "gaussian_noise"]
    assert [run.value("test_accuracy") for run in cell["runs"]] == [24 / 40, 26 / 40, 25 / 40]
    assert (cell["mean"], cell["std"]) == (pytest.approx(0.625), pytest.approx(0.025))
    assert cells["missing"].to_dict() == {
        key: int(key == ("default", "fog")) for key in cells.index
    }
    assert report.found.unfinished == ["0123456789abcdef"]
    assert cells.loc[("default", "fog"), "pairs"] == 2
    assert cells.loc[("default", "gaussian_noise"), "difference"] == pytest.approx(7 / 40)
    figures = report.to_frame().set_index(["method", "corruption"])
    assert figures["best"].tolist() == [False, False, False, True, True, True]
    # A method without seeds takes no seeds away from its neighbors in a row.
    turned = make_report([out], rows=["corruption"], columns=["method"]).cells
    assert turned["missing"].sum() == turned.loc[("fog", "default"), "missing"] == 1


def test_as_json(out, printed):
    figures = json.loads(printed(out, "--baseline", "none", "--json", "-"))
    assert sorted(figures) == ["cells", "failed", "metric", "missing", "rates"]
    last = figures["cells"][-1]
    assert (last["method"], last["corruption"], last["values"]) == ("default", "fog", [0.5, 0.6])
    assert (last["pairs"], last["seeds"], last["missing"]) == (2, 2, 1)
    assert figures["cells"][0]["difference"] is None


def test_folders_of_parts_are_one(out, tmp_path, printed):
    together = printed(out)
    for place, folder in enumerate(sorted(out.iterdir())):
        part = tmp_path / f"part{place % 2}"
        part.mkdir(exist_ok=True)
        folder.rename(part / folder.name)
    assert printed(tmp_path / "part0", tmp_path / "part1") == together


def test_runs_that_differ_in_more_than_the_seed_are_not_averaged(out, printed, refused):
    write_result(out, "paper", "fog", 4, np.arange(IMAGES) < 3, options={"queries": 50})
    error = refused(out)
    assert error.startswith("pmt-lab: error: paper, fog: runs differ in queries (")
    assert "choose with --where queries=..., or put queries into --rows or --columns" in error
    text = printed(out, "--where", "queries=50")
    assert rows_of(text, "paper") == [["paper", "7.5 (2.6..19.9)"]]
    assert "Bold" not in text  # a single row has nothing to be better than


def test_axes_that_differ_are_rows_by_themselves(tmp_path, printed, refused):
    out = tmp_path / "starts"
    write_result(out, "none", "fog", None, np.arange(IMAGES) < 20)
    for method in ("paper", "default"):
        for right, preparation in ((24, "none"), (28, "head")):
            options = {"preparation": preparation}
            write_result(out, method, "fog", 1, np.arange(IMAGES) < right, options=options)
    text = printed(out, "--baseline", "none")
    assert rows_of(text, "paper") == [
        ["paper, head", "**70.0 (54.6..81.9)**"],
        ["paper, none", "60.0 (44.6..73.7)"],
        ["paper, head", "**+20.0 (+7.4..+32.6)**", "1 of 1 (1 clearly)"],
        ["paper, none", "**+10.0 (+0.6..+19.4)**", "1 of 1 (1 clearly)"],
    ]
    for columns, head in (
        ("preparation", ["method", "head", "none", "mean"]),
        ("method", ["corruption, preparation", "none", "paper", "default", "mean"]),
        ("severity", ["method, preparation", "5"]),
    ):
        assert head in rows_of(printed(out, "--columns", columns), head[0])
    assert refused(out, "--rows", "method").endswith(
        "choose with --where preparation=..., or put preparation into --rows or --columns\n"
    )
    assert refused(out, "--baseline", "paper") == (
        "pmt-lab: error: --baseline 'paper' is 2 rows; choose 'paper,head' or 'paper,none'\n"
    )
    assert printed(out, "--baseline", "paper,none")
    fields = ("--rows", "method,layers", "--where", "preparation=none")
    assert rows_of(printed(out, *fields), "none") == [["none, -", "50.0 (35.2..64.8)"]]


def test_failed_runs_are_told_unless_they_are_finished(out, tmp_path, printed):
    record = {"title": "paper, frost 5", "error": "OSError: the disk is full", "trial": 0.0}
    (out / "0123.failed").write_text(json.dumps(record))
    (out / "4567.failed").write_text(json.dumps({**record, "trial": 0.3}))
    finished = next(out.glob("*/result.json")).parent
    finished.with_suffix(".failed").write_text(json.dumps(record))
    text = printed(out)
    assert text.endswith(
        "\n- 1 run failed (paper, frost 5: OSError: the disk is full). The same `pmt-lab sweep` "
        "tries again.\n"
    )
    assert printed(out, "--keep", tmp_path / "kept.json").startswith(text)
    assert printed(tmp_path / "kept.json") == text
    assert json.loads(printed(out, "--json", "-"))["failed"] == {
        "paper, frost 5": "OSError: the disk is full"
    }


def test_a_column_without_a_run_is_a_dash(out, printed):
    write_result(out, "late", "fog", 1, np.arange(IMAGES) < 10)
    text = printed(out)
    assert rows_of(text, "late") == [["late", "-", "25.0 (14.2..40.2) [1 of 3]", "-"]]
    assert "6 of 20 runs are missing (-, or [those there]); 1 begun and not finished." in text


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--metric", "accuracy"], "--metric 'accuracy' is unknown; did you mean "),
        (
            ["--rows", "methods"],
            "'methods' is not a field that rows or columns can have; did you mean",
        ),
        (["--where", "sed=1"], "'sed' is not a field of these runs; there are base, corruption"),
        (["--where", "seed=9"], "--where seed=9 leaves no run; there are 1, 2, 3, None"),
        (["--where", "seed"], "'seed' must be FIELD=VALUE, for example severity=5"),
        (["--baseline", "papr"], "--baseline 'papr' is not a row; did you mean 'paper'?"),
        (["--plot", "curves.bmp"], "--plot curves.bmp: the suffix must be .png, .svg or .pdf"),
        (["--rows", ","], "must name one or more"),
        (["--keep", "no/x.json"], "--keep no/x.json: its folder does not exist; create it"),
    ],
)
def test_errors_say_what_to_do(out, refused, arguments, error):
    told = refused(out, *arguments)
    assert error in told
    assert told.count("\n") == 1


def test_folders_that_hold_no_sweep(tmp_path, refused):
    assert f"{tmp_path}: holds no finished run of a sweep" in refused(tmp_path)
    error = refused(tmp_path / "nowhere")
    assert error == f"pmt-lab: error: {tmp_path}/nowhere: no such folder or file; {REMEDY}\n"


def test_figures_in_their_units():
    assert number("test_accuracy", 0.6666) == "66.7"
    assert number("test_loss", -0.0001) == "0.000"
    assert number("test_loss", -0.0001, sign=True) == "-0.000"  # excludes 0
    assert number("test_loss", -1e-17, sign=True) == "+0.000"
    assert number("macs", 7_857_900_000_000) == "7,858"
    assert number("macs", math.nan) == "-"


def test_the_curve_of_a_cell(out):
    cells = make_report([out]).cells["runs"]
    curve = mean_curve(cells["paper", "gaussian_noise"])
    assert curve.gmacs.tolist() == [2.0, 4.0]
    assert curve.before == 2.5
    shares = np.array(RIGHT["paper", "gaussian_noise"]) / IMAGES
    assert curve.mean == pytest.approx([2.2 - shares.mean(), 2.0 - shares.mean()])
    assert curve.low == pytest.approx([2.2 - shares.max(), 2.0 - shares.max()])
    assert curve.high == pytest.approx([2.2 - shares.min(), 2.0 - shares.min()])
    assert mean_curve(cells["none", "fog"]) is None


def test_curves_are_drawn_the_same_twice(out, tmp_path, printed, refused):
    pytest.importorskip("matplotlib")
    paths = [tmp_path / "a.png", tmp_path / "b.png"]
    for path in paths:
        assert printed(out, "--plot", path).endswith(f"curves in {path}\n")
    assert paths[0].read_bytes() == paths[1].read_bytes()
    error = refused(out, "--where", "method=none", "--plot", paths[0])
    assert "no run here was trained, so there is no curve to draw" in error


def test_runs_that_do_not_say_which_images_are_right(tmp_path):
    """Three seeds then count as one: no more than that is known."""
    measured = {"test": {"accuracy": 0.5, "loss": 1.5, "n": IMAGES, "crc32": 1}}
    for seed in (1, 2, 3):
        write_result(tmp_path, "default", "fog", seed, after=measured)
    (cell,) = make_report([tmp_path]).cells[["low", "high"]].to_numpy()
    assert tuple(cell) == wilson_interval(20, IMAGES)


@pytest.mark.parametrize("metric", ["test_accuracy", "before_test_accuracy", "test_loss", "macs"])
def test_the_tables_of_kept_runs_are_those_of_the_folders(out, kept, tmp_path, printed, metric):
    for form in ("md", "tex", "csv"):
        options = ("--format", form, "--metric", metric, "--baseline", "paper")
        assert printed(kept, *options) == printed(out, *options)
    again = tmp_path / "again.json"
    make_report([kept]).keep(again)
    assert again.read_bytes() == kept.read_bytes()


def test_only_the_runs_of_the_table_are_kept(out, kept, tmp_path, printed):
    path = tmp_path / "fog.json"
    fog = printed(out, "--where", "corruption=fog")
    assert printed(out, "--where", "corruption=fog", "--keep", path) == f"{fog}6 runs in {path}\n"
    assert printed(path) == fog
    held = json.loads(path.read_text())
    assert list(held) == ["pmt", "commit", "date", "unfinished", "failed", "runs"]
    assert [run["axes"]["method"] for run in held["runs"]][:3] == ["none", "paper", "paper"]
    # Files and folders are one sweep.
    assert printed(kept, out) == printed(out)
    for run in held["runs"]:
        (out / run["hash"] / "result.json").unlink()
        (out / run["hash"] / "config.toml").write_text("")
    assert printed(out, path) == printed(kept)


def test_chosen_rates_and_losses_that_are_not_finite(tmp_path, printed):
    trials = [
        {"factor": factor, "learning_rate": factor / 10, "held_out_loss": loss, "hash": "0" * 16}
        for factor, loss in ((0.3, 1.5), (1.0, None))
    ]
    tuning = {"factor": 0.3, "learning_rate": 0.03, "at_edge": True, "trials": trials}
    out, file = tmp_path / "out", tmp_path / "kept.json"
    measured = {"test": {"accuracy": 0.2, "loss": math.inf, "n": IMAGES, "crc32": 1}}
    write_result(out, "paper", "fog", 1, tuning=tuning, after=measured)
    other = {**tuning, "trials": [{**trials[0], "factor": 0.1}, trials[0]], "at_edge": False}
    write_result(out, "default", "fog", 1, tuning=other)
    make_report([out]).keep(file)
    text = printed(file, "--metric", "test_loss")
    assert text == printed(out, "--metric", "test_loss")
    assert rows_of(text, "paper") == [
        ["paper", "inf"],
        ["paper", "none", "B2", "0.3", "0.03", "-", "**1.5000**", "not finite"],
    ]
    assert rows_of(text, "method")[1][5:] == ["loss at 0.1", "loss at 0.3", "loss at 1"]
    assert text.endswith(
        "Bold: the one that won.\n"
        "- The rate of paper, none, B2 is at the edge of the factors tried.\n"
    )
    assert "learning rates" not in printed(out, "--format", "csv")
    assert "loss at 0.3" in printed(out, "--format", "tex")


def test_curves_have_twelve_points(out, tmp_path):
    run = make_report([out]).cells.loc[("paper", "fog"), "runs"][0]
    epochs = [{"kind": "epoch", "macs": n, "held_out_loss": 1 / 3} for n in range(1, 101)]
    records = [
        {"step": 1, "changed": 1, "forwards": 4, "seconds": 1.0, "epoch": 1} | one for one in epochs
    ]
    (run.folder / "metrics.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    make_report([out]).keep(tmp_path / "kept.json")
    (again,) = make_report([tmp_path / "kept.json"], where={"seed": ["1"]}, rows=["method"]).cells[
        "runs"
    ]["paper", "fog"]
    curve = again.curve()
    assert (len(curve), curve[0], curve[-1]) == (12, (1, 0.333333), (100, 0.333333))


@pytest.mark.parametrize(
    "change", [{"base": 1}, {"after": 1}, {"axes": {}}, {"hash": 1}, {"options": []}]
)
def test_damaged_files(kept, refused, change):
    value = json.loads(kept.read_text())
    value["runs"][2] |= change
    if "base" in change:
        del value["runs"][2]["base"]
    kept.write_text(json.dumps(value))
    error = refused(kept)
    assert error.startswith(f"pmt-lab: error: {kept}: holds no runs of a sweep (")
    assert error.endswith(f"; {REMEDY}\n")


def test_files_that_hold_no_runs(kept, refused):
    study = RESULTS / "cifar10c-accuracy.json"
    assert f"{study}: holds no runs of a sweep (" in refused(study)
    kept.write_text(kept.read_text()[:200])
    assert f"pmt-lab: error: {kept}: is not valid JSON (" in refused(kept)


def test_a_file_is_whole_or_as_it_was(out, kept, refused, monkeypatch):
    before = kept.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    error = refused(out, "--where", "method=paper", "--keep", kept)
    assert error == "pmt-lab: error: No space left on device\n"
    assert kept.read_bytes() == before
    assert [path.name for path in kept.parent.iterdir() if path != out] == ["kept.json"]


def rights(*rows: str, crc: int = 1) -> list[tuple[int, np.ndarray]]:
    return [(crc, np.array([sign == "1" for sign in row])) for row in rows]


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.706), (2, 4.303), (10, 2.228), (20, 2.086), (21, 2.080), (30, 2.042), (120, 1.980)],
)
def test_quantiles_of_student(freedom, quantile):
    assert student_t(freedom) == pytest.approx(quantile, abs=6e-4)


def test_seeds_that_agree_add_no_images():
    assert effective_images(rights("110100", "110100", "110100")) == 6


def test_seeds_that_disagree_evenly_count_in_full():
    assert effective_images(rights("111000", "000111")) == 12


def test_seeds_that_agree_on_most():
    # Shares 1, 1, 1/2, 0: mean 5/8, variance 11/64; 4 * (5/8 * 3/8) / (11/64) = 60/11.
    assert effective_images(rights("1110", "1100")) == pytest.approx(60 / 11)


def test_all_right_or_all_wrong():
    assert effective_images(rights("1111", "1111")) == 4
    assert effective_images(rights("0000")) == 4


def test_seeds_with_other_images_are_independent():
    assert effective_images(rights("1100", crc=1) + rights("1010", crc=2)) == 8


def test_one_seed_has_wilsons_interval():
    assert accuracy_interval(rights("1110100110")) == wilson_interval(6, 10)


def test_the_interval_holds_the_truth_as_often_as_it_says():
    """Images that are right with a probability of their own; seeds are drawn, then images."""
    generator = np.random.Generator(np.random.PCG64(1))
    held, tries, images = 0, 400, 60
    hardness = generator.beta(0.6, 0.4, 100_000)
    for _ in range(tries):
        chosen = generator.choice(hardness, images)
        drawn = [(1, generator.random(images) < chosen) for _ in range(3)]
        low, high = accuracy_interval(drawn)
        held += low <= float(hardness.mean()) <= high
    assert 0.92 <= held / tries <= 0.98


def test_a_difference_holds_both_uncertainties():
    a, b = rights("1111100", "1111010"), rights("1100100", "1110000")
    pairs = list(zip(a, b, strict=True))
    values = [2 / 7, 2 / 7]
    # No spread over seeds: images alone. Shares of the difference: 0 0 1/2 1 0 1/2 0.
    by_image = np.array([0, 0, 0.5, 1, 0, 0.5, 0])
    # The two images whose difference one seed alone has are half of each seed's, up and down.
    residual = 4 * 0.5**2 / (1 * 6)
    half = 1.959964 * math.sqrt((by_image.var(ddof=1) - residual / 2) / 7)
    low, high = difference_interval(values, pairs)
    assert (low, high) == pytest.approx((2 / 7 - half, 2 / 7 + half))
    # Losses have no images: Student's t over seeds alone.
    low, high = difference_interval([0.1, 0.2, 0.3], None)
    half = 4.302653 * 0.1 / math.sqrt(3)
    assert (low, high) == pytest.approx((0.2 - half, 0.2 + half))


def test_one_loss_has_no_interval():
    assert difference_interval([0.1], None) is None


def test_pairs_with_other_images_are_paired_by_seed_alone():
    pairs = list(zip(rights("110", crc=1), rights("100", crc=2), strict=True))
    assert difference_interval([1 / 3], pairs) is None


@pytest.mark.parametrize("images", [100, 400])
@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
@pytest.mark.parametrize("spread", [0.0, 0.1, 0.5])
def test_a_difference_holds_the_truth_as_often_as_it_says(images, seeds, spread):
    """Two methods of the same accuracy, whose images and seeds each have effects of their own."""
    generator = np.random.Generator(np.random.PCG64([images, seeds, round(10 * spread)]))
    tries, held = 1000, 0
    for _ in range(tries):
        hardness = generator.normal(1.5, 1.5, images)
        favored = generator.normal(0, 0.25, images)  # by one of the methods
        of_seeds = generator.normal(0, spread, (seeds, 2, 1))
        logits = hardness + np.stack([favored, -favored]) + of_seeds
        right = generator.random((seeds, 2, images)) < 1 / (1 + np.exp(-logits))
        values = right.mean(axis=2) @ [1.0, -1.0]
        ends = difference_interval(values.tolist(), [((1, a), (1, b)) for a, b in right])
        assert ends is not None
        held += ends[0] - 1e-12 <= 0 <= ends[1] + 1e-12
    assert 0.93 <= held / tries <= 0.975
