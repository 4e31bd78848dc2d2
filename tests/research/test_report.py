"""Tables and curves of sweeps, from folders whose figures are known."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cli_files import check_golden
from report_files import IMAGES, RIGHT, write_result, write_results

from pmt.cli import main
from pmt.protocol import wilson_interval
from pmt.research.report import Figures, compare, pivot, read_runs
from pmt.research.report.curves import mean_curve


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    write_results(folder)
    return folder


@pytest.mark.parametrize("kind", ["md", "tex", "csv"])
def test_the_table_with_a_comparison(kind, out, capsys):
    assert main(["report", str(out), "--baseline", "paper", "--format", kind]) == 0
    check_golden(f"report.{kind}", capsys.readouterr().out)


def test_rows_columns_and_range(out, capsys):
    command = ["report", str(out), "--rows", "corruption,severity", "--columns", "method"]
    command += ["--metric", "test_loss", "--spread", "range", "--where", "method=paper|default"]
    assert main(command) == 0
    check_golden("report_range.md", capsys.readouterr().out)


def test_the_file_is_what_is_printed(out, tmp_path, capsys):
    assert main(["report", str(out)]) == 0
    printed = capsys.readouterr().out
    file = tmp_path / "table.md"
    assert main(["report", str(out), "--out", str(file)]) == 0
    assert file.read_text() == printed
    assert capsys.readouterr().out == f"3 x 2 cells in {file}\n"


def test_figures_by_hand(out):
    runs, unfinished = read_runs([out])
    table = pivot(runs, unfinished=unfinished)
    assert table.rows == (("none",), ("paper",), ("default",))
    assert table.columns == (("gaussian_noise",), ("fog",))
    cell = table.cells[("paper",), ("gaussian_noise",)]
    assert cell.values == (24 / 40, 26 / 40, 25 / 40)
    assert cell.mean == pytest.approx(0.625)
    assert cell.deviation == pytest.approx(0.025)
    assert table.best(("fog",)) == [("paper",), ("default",)]
    assert table.best(("gaussian_noise",)) == [("default",)]
    assert table.cells[("default",), ("fog",)].missing == 1
    assert table.cells[("none",), ("fog",)].missing == 0
    assert (table.missing, table.expected, table.unfinished) == (1, 14, 1)
    assert table.average(("none",)) == pytest.approx(14 / 40)
    compared = compare(table, "paper")
    assert compared.differences[("default",), ("fog",)].pairs == 2
    assert compared.differences[("default",), ("gaussian_noise",)].mean == pytest.approx(7 / 40)
    assert compared.wins(("default",)) == (1, 1, 2)
    assert compared.wins(("none",)) == (0, 0, 2)


def test_rows_and_columns_may_be_swapped(out):
    """A method without seeds takes no seeds away from its neighbors in a row."""
    runs, _ = read_runs([out])
    table = pivot(runs, rows=("corruption",), columns=("method",))
    assert (table.missing, table.expected) == (1, 14)
    assert table.cells[("fog",), ("default",)].missing == 1


def test_as_json(out, capsys):
    assert main(["report", str(out), "--baseline", "none", "--json", "-"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert sorted(figures) == ["better", "cells", "metric", "missing"]
    assert figures["better"]["default"] == {"columns": 2, "clearly": 1, "of": 2}
    last = figures["cells"][-1]
    assert last["values"] == [0.5, 0.6]
    assert last["seeds"] == [1, 2]
    assert last["difference"]["pairs"] == 2


def test_folders_of_shards_are_one(out, tmp_path, capsys):
    assert main(["report", str(out)]) == 0
    together = capsys.readouterr().out
    for place, folder in enumerate(sorted(out.iterdir())):
        shard = tmp_path / f"shard{place % 2}"
        shard.mkdir(exist_ok=True)
        folder.rename(shard / folder.name)
    assert main(["report", str(tmp_path / "shard0"), str(tmp_path / "shard1")]) == 0
    assert capsys.readouterr().out == together


def test_runs_that_differ_in_more_than_the_seed_are_not_averaged(out, capsys):
    options = {"layers": "B2", "seed": 4, "queries": 50}
    write_result(out, "paper", "fog", 4, np.arange(IMAGES) < 3, options=options)
    assert main(["report", str(out)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("pmt: error: paper, fog: runs differ in queries (")
    assert "choose with --where queries=..., or put queries into --rows or --columns" in error
    assert main(["report", str(out), "--where", "queries=50"]) == 0
    assert "| paper | **7.5 (2.6..19.9)** |" in capsys.readouterr().out


def test_a_column_without_a_run_is_a_dash(out, capsys):
    write_result(out, "late", "fog", 1, np.arange(IMAGES) < 10)
    assert main(["report", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "| late | - | 25.0 (14.2..40.2) [1 of 3] | - |" in printed
    assert "6 of 20 runs are missing (-, or [those there]); 1 begun and not finished." in printed


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
        (["--rows", ","], "must name one field or more"),
    ],
)
def test_errors_say_what_to_do(out, capsys, arguments, error):
    assert main(["report", str(out), *arguments]) == 2
    assert error in capsys.readouterr().err


def test_folders_that_hold_no_sweep(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    assert f"{tmp_path}: holds no finished run of a sweep" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "nowhere")]) == 2
    assert "is not a folder; give the --out of a `pmt sweep`" in capsys.readouterr().err


def test_figures_in_their_units():
    assert Figures("test_accuracy").value(0.6666) == "66.7"
    assert Figures("test_loss").value(-0.0001, sign=True) == "+0.000"
    assert Figures("macs").value(7_857_900_000_000) == "7,858"
    assert Figures("macs").title == "macs in GMAC"


def test_the_curve_of_a_cell(out):
    runs, _ = read_runs([out])
    table = pivot(runs)
    curve = mean_curve(table.cells[("paper",), ("gaussian_noise",)])
    assert curve.gmacs.tolist() == [2.0, 4.0]
    assert curve.before == 2.5
    shares = np.array(RIGHT["paper", "gaussian_noise"]) / IMAGES
    assert curve.mean == pytest.approx([2.2 - shares.mean(), 2.0 - shares.mean()])
    assert curve.low == pytest.approx([2.2 - shares.max(), 2.0 - shares.max()])
    assert curve.high == pytest.approx([2.2 - shares.min(), 2.0 - shares.min()])
    assert mean_curve(table.cells[("none",), ("fog",)]) is None


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_curves_are_drawn_the_same_twice(out, tmp_path, capsys, suffix):
    pytest.importorskip("matplotlib")
    drawn = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.{suffix}"
        assert main(["report", str(out), "--plot", str(path)]) == 0
        assert capsys.readouterr().out.endswith(f"curves in {path}\n")
        drawn.append(path.read_bytes())
    assert drawn[0] == drawn[1]


def test_no_curve_without_training(out, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path = tmp_path / "curves.png"
    assert main(["report", str(out), "--where", "method=none", "--plot", str(path)]) == 2
    assert "no run here was trained, so there is no curve to draw" in capsys.readouterr().err


def test_runs_that_do_not_say_which_images_are_right(tmp_path):
    """Three seeds then count as one: no more than that is known."""
    for seed in (1, 2, 3):
        folder = write_result(tmp_path, "default", "fog", seed, np.arange(IMAGES) < 20)
        result = json.loads((folder / "result.json").read_text())
        del result["after"]["test"]["right"]
        (folder / "result.json").write_text(json.dumps(result))
    (cell,) = pivot(read_runs([tmp_path])[0]).cells.values()
    assert cell.interval == wilson_interval(20, IMAGES)
