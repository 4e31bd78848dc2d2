"""Sweeps and reports have the methods that a user registers."""

import pytest
from cli_files import write_data, write_model
from lab_files import program
from sweep_files import GRID

import pmt
from pmt.methods import registry
from pmt.train.extension_names import full_name
from pmt_lab.cli import main
from pmt_lab.sweep import open_sweep

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
