"""Sweeps and reports have the methods that a user registers."""

from cli_files import write_data, write_model
from lab_files import program
from sweep_files import GRID

from pmt_lab.cli import main

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
