"""Where oneDNN's headers are installed: the comparison builds, and both compute the same layers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_files import write_model
from required import need

import pmt

ROOT = Path(__file__).parents[2]


@pytest.fixture
def onednn():
    header = Path("/usr/include/oneapi/dnnl/dnnl.hpp")
    need(header.is_file(), f"{header} not found: apt-get install libdnnl-dev")


@pytest.mark.usefixtures("onednn")
def test_onednn_runs_the_layers_of_a_model(tmp_path):
    program = ROOT / "lab" / "benchmarks" / "against_onednn.py"
    options = ["--images", "1,4", "--repeat", "1", "--json", tmp_path / "figures.json"]
    done = subprocess.run(
        [sys.executable, program, write_model(tmp_path), *options],
        env={**os.environ, "PYTHONPATH": str(Path(pmt.__file__).parents[1])},
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    names = [layer["name"] for layer in figures["layers"]]
    assert names == ["stem", "expand", "depth", "project", "down"]
    for layer in figures["layers"]:
        assert set(layer["pmt"]) == set(layer["onednn"]) == {"1", "4"}
        assert "ref" not in layer["implementation"]
    # Depthwise sums do not saturate, on no machine; the s8 kernels may halve the weights, though,
    # and which type is the fastest depends on the day.
    depth = figures["layers"][2]
    assert depth["wrong"] == 0 or depth["implementation"].startswith("s8")
    assert "all convolutions" in done.stdout
