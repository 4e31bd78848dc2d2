"""Each command is one function, as a notebook calls it; plugins' methods are those of all."""

from dataclasses import asdict

import pytest
from cli_files import write_data, write_model
from lab_files import program
from printed_figures import OF_THE_MOMENT, plain, printed_by
from sweep_files import GRID, RUNS, write_grid

import pmt
from pmt.methods import registry
from pmt.train.extension_names import full_name
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


PLUGIN = """
import pmt

pmt.methods.register("own_signs", "custom random signs", estimator=lambda *_: {})
"""


def test_sweeps_and_reports_have_a_plugins_method(tmp_path, capsys):
    plugin = tmp_path / "own_method.py"
    plugin.write_text(PLUGIN)
    model, images = write_model(tmp_path), write_data(tmp_path)
    text = GRID.format(model=model, data=images, macs=2.5e7, seeds="[1]")
    text = text.replace('"default", "paper"', '"own_signs"').replace(', "contrast"', "")
    (tmp_path / "grid.toml").write_text(text + 'preparation = "none"\n')
    sweep = program(
        *("sweep", tmp_path / "grid.toml", "--out", tmp_path / "runs"),
        *("--jobs", 2, "--plugin", plugin),
    )
    _, error = sweep.communicate()
    assert sweep.returncode == 0, error
    assert main(["report", str(tmp_path / "runs")]) == 0
    assert "own_signs" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:queries has no effect")
def test_the_hash_of_a_run_stands_for_its_estimator_too(tmp_path, monkeypatch):
    for known in (registry.METHODS, registry.KINDS):
        monkeypatch.setitem(known, "own_still", None)  # gone at the end of the test
    grid = tmp_path / "grid.toml"
    model, images = write_model(tmp_path), write_data(tmp_path)
    text = GRID.format(model=model, data=images, macs=2.5e7, seeds="[1]")
    text = text.replace('"default", "paper"', '"own_still"').replace(', "contrast"', "")
    grid.write_text(text + 'preparation = "none"\n')

    def planned(value):
        def still(engine, images, labels, step):
            assert value
            return {}

        pmt.methods.register("own_still", "no step", estimator=still)
        sweep = open_sweep(grid, tmp_path / "runs")
        return sweep.runs[-1], still

    first, still = planned(1)
    assert first.definition()["extensions"] == {"estimator": full_name(still)}
    assert planned(1)[0].hash == first.hash
    assert planned(2)[0].hash != first.hash
    grid.write_text(text.replace('"own_still"', '"default"'))
    assert "extensions" not in open_sweep(grid, tmp_path / "runs").runs[-1].definition()
