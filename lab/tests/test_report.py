"""Tables and curves of sweeps, from folders whose figures are known."""

from __future__ import annotations

import json

import numpy as np
import pytest
from lab_files import check_golden
from report_files import IMAGES, RIGHT, write_result, write_results

from pmt.protocol import wilson_interval
from pmt_lab.cli import main
from pmt_lab.report import Figures, compare, pivot, read_runs
from pmt_lab.report.curves import mean_curve


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
    printed = capsys.readouterr().out
    assert "| paper | 7.5 (2.6..19.9) |" in printed
    assert "Bold" not in printed  # a single row has nothing to be better than


def write_starts(out):
    """Write two methods from two starts, and one that has no start and no layers."""
    out.mkdir()
    write_result(out, "none", "fog", None, np.arange(IMAGES) < 20)
    for method in ("paper", "default"):
        for place, preparation in enumerate(("none", "head")):
            options = {"layers": "B2,head", "seed": 1, "preparation": preparation}
            right = np.arange(IMAGES) < 24 + 4 * place
            write_result(out, method, "fog", 1, right, options=options)


def test_axes_that_differ_are_rows_by_themselves(tmp_path, capsys):
    out = tmp_path / "starts"
    write_starts(out)
    assert main(["report", str(out), "--baseline", "none"]) == 0
    printed = capsys.readouterr().out
    assert "| method, preparation | fog |" in printed
    assert [line for line in printed.splitlines() if line.startswith("| paper")] == [
        "| paper, head | **70.0 (54.6..81.9)** |",
        "| paper, none | 60.0 (44.6..73.7) |",
        "| paper, head | **+20.0 (+7.4..+32.6)** | 1 of 1 (1 clearly) |",
        "| paper, none | **+10.0 (+0.6..+19.4)** | 1 of 1 (1 clearly) |",
    ]
    for columns, head in (
        ("preparation", "| method | head | none | mean |"),
        ("method", "| corruption, preparation | none | paper | default | mean |"),
        ("severity", "| method, preparation | 5 |"),
    ):
        assert main(["report", str(out), "--columns", columns]) == 0
        assert head in capsys.readouterr().out


def test_rows_that_were_named_stay_as_they_are(tmp_path, capsys):
    out = tmp_path / "starts"
    write_starts(out)
    assert main(["report", str(out), "--rows", "method"]) == 2
    assert capsys.readouterr().err.endswith(
        "choose with --where preparation=..., or put preparation into --rows or --columns\n"
    )


def test_a_baseline_of_several_rows_is_refused(tmp_path, capsys):
    out = tmp_path / "starts"
    write_starts(out)
    assert main(["report", str(out), "--baseline", "paper"]) == 2
    assert capsys.readouterr().err == (
        "pmt: error: --baseline 'paper' is 2 rows; choose 'paper,head' or 'paper,none'\n"
    )
    assert main(["report", str(out), "--baseline", "paper,none"]) == 0


def test_a_field_that_a_run_lacks_is_a_dash(tmp_path, capsys):
    out = tmp_path / "starts"
    write_starts(out)
    command = ["report", str(out), "--rows", "method,layers", "--where", "preparation=none"]
    assert main(command) == 0
    assert "\n| none, - | 50.0 (35.2..64.8) |\n" in capsys.readouterr().out


def write_failure(out, method, corruption, **options):
    """Write what a sweep leaves of a run that failed."""
    axes = {"method": method, "corruption": corruption, "severity": 5, "layers": "B2", "seed": 1}
    record = {
        "hash": "f" * 15 + str(len(list(out.glob("*.failed")))),
        "axes": axes,
        "order": {"method": 0, "corruption": 2},
        "base": method,
        "trainer": "zeroth_order",
        "options": {"layers": "B2", "seed": 1, **options},
        "contents": {},
        "protocol": {},
        "error": "OSError: the disk is full",
    }
    path = out / f"{record['hash']}.failed"
    path.write_text(json.dumps(record))
    return path


def test_failed_runs_are_told(out, tmp_path, capsys):
    write_failure(out, "paper", "fog")
    kept = tmp_path / "kept.json"
    assert main(["report", str(out)]) == 0
    printed = capsys.readouterr().out
    assert printed.endswith(
        "\n- 1 run failed; the same `pmt-lab sweep` tries it again. If the grid no longer has it, "
        "remove HASH.failed.\n"
    )
    write_failure(out, "paper", "frost")
    write_failure(out, "mine", "frost")
    assert main(["report", str(out), "--keep", str(kept)]) == 0
    printed = capsys.readouterr().out
    assert printed.endswith(
        "\n- 3 runs failed; the same `pmt-lab sweep` tries them again. If the grid no longer "
        "has them, "
        "remove HASH.failed."
        "\n- No row for mine: runs failed and none is finished."
        f"\n- No column for frost: runs failed and none is finished.\n13 runs in {kept}\n"
    )
    assert main(["report", str(kept)]) == 0
    assert printed.startswith(capsys.readouterr().out)
    assert main(["report", str(out), "--where", "method=mine|paper", "--json", "-"]) == 0
    failed = json.loads(capsys.readouterr().out)["failed"]
    assert [(run["method"], run["corruption"], run["error"]) for run in failed] == [
        ("paper", "fog", "OSError: the disk is full"),
        ("paper", "frost", "OSError: the disk is full"),
        ("mine", "frost", "OSError: the disk is full"),
    ]


def test_a_start_whose_runs_all_failed_is_named(tmp_path, capsys):
    out = tmp_path / "starts"
    out.mkdir()
    for method in ("paper", "default"):
        options = {"layers": "B2", "seed": 1, "preparation": "none"}
        write_result(out, method, "fog", 1, np.arange(IMAGES) < 24, options=options)
    write_failure(out, "default", "fog", preparation="head")
    assert main(["report", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "| method, preparation | fog |" in printed
    assert printed.endswith("\n- No row for default, head: runs failed and none is finished.\n")


@pytest.mark.parametrize("text", [b"{}", b"{", b"\xff", b'{"error": "caf\\udce9"}'])
def test_a_damaged_record_of_a_failed_run_is_an_unfinished_one(out, capsys, text):
    path = write_failure(out, "paper", "frost")
    path.write_bytes(text)
    assert main(["report", str(out)]) == 0
    printed = capsys.readouterr().out
    assert printed.endswith(
        "\n- 1 of 14 runs are missing (-, or [those there]); 2 begun and not finished.\n"
    )


def test_the_record_of_a_failed_run_that_has_a_result_is_left_alone(out, capsys):
    assert main(["report", str(out)]) == 0
    printed = capsys.readouterr().out
    for number, path in enumerate(sorted(out.glob("*/result.json"))):
        failed = write_failure(out, "paper", "frost")
        failed = failed.rename(path.parent.with_suffix(".failed"))
        failed.write_text("{}" if number % 2 else failed.read_text())
    assert main(["report", str(out)]) == 0
    assert capsys.readouterr().out == printed


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
    error = capsys.readouterr().err
    assert "nowhere: no such folder or file; give the --out of a `pmt-lab sweep`" in error


def test_figures_in_their_units():
    assert Figures("test_accuracy").value(0.6666) == "66.7"
    assert Figures("test_loss").value(-0.0001) == "0.000"
    assert Figures("test_loss").value(-0.0001, sign=True) == "-0.000"
    assert Figures("test_loss").value(-1e-17, sign=True) == "+0.000"
    ends = (-0.236, -0.00048)  # bold, as it excludes 0
    assert Figures("test_accuracy").interval(ends, sign=True) == "(-23.6..-0.0)"
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
