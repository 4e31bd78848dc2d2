"""Each command is one public function: called as a notebook calls it, it gives the same figures."""

from dataclasses import asdict

import pytest
from cli_files import write_model
from printed_figures import OF_THE_MOMENT, plain, printed_by
from sweep_files import RUNS, write_grid

import pmt
from pmt_lab.benchmark.bench_job import run_benchmark
from pmt_lab.cli import main
from pmt_lab.report import make_report
from pmt_lab.reproduce.reproduce_job import reproduce
from pmt_lab.sweep import open_sweep


@pytest.fixture
def model(tmp_path):
    return str(write_model(tmp_path))


@pytest.fixture
def printed(capsys):
    return printed_by(main, capsys)


def test_bench(model, printed):
    options = ("--images", "1,2", "--threads", "1", "--repeat", "1", "--batch", "2")
    expected = printed("bench", model, *options, "--queries", "2", "--steps", "node")
    result = run_benchmark(
        pmt.load(model),
        model,
        images=(1, 2),
        threads=(1,),
        repeat=1,
        rules=("node",),
        options=pmt.TrainingOptions(batch=2, queries=2),
    )
    found = plain(result)
    assert list(found) == list(expected)
    for part in ("forward", "layers", "steps", "engines"):
        assert [list(row) for row in found[part]] == [
            [key for key in row if key not in OF_THE_MOMENT] for row in expected[part]
        ]
    assert result["steps"][0]["macs"] == expected["steps"][0]["macs"]


def test_sweep_and_report(tmp_path, printed):
    grid = write_grid(tmp_path, macs=1e7)
    there, here = tmp_path / "a", tmp_path / "b"
    expected = printed("sweep", grid, "--jobs", "1", "--out", there)
    sweep, summary = open_sweep(grid, here).run(jobs=1)
    assert sorted(summary.finished) == sorted(run["hash"] for run in expected["runs"])
    assert (len(sweep.results), sweep.left) == (RUNS, [])

    options = ("--rows", "method", "--columns", "corruption,severity", "--baseline", "paper")
    expected = printed("report", there, *options)
    report = make_report([here], columns=("corruption", "severity"), baseline="paper")
    assert plain(report.to_json()) == plain(expected)


def test_reproduce(tmp_path, printed):
    expected = printed("reproduce", "bp-free-methods", "--scale", "small", "--out", tmp_path)
    done = reproduce("bp-free-methods", "small", out=tmp_path, collect=True)
    (found,) = expected["studies"]
    assert plain({**done.result, "rows": [asdict(row) for row in done.rows]}) == plain(
        {name: value for name, value in found.items() if name != "failed"}
    )
