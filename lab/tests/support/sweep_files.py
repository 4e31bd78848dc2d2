"""A grid of small runs on disk, and what its runs leave."""

import json
from pathlib import Path
from typing import Any

from cli_files import write_data, write_model
from networks import residual_network

import pmt
from pmt.train.prepare import measure_statistics, with_statistics

GRID = """
[model]
path = "{model}"
[data]
path = "{data}"
[protocol]
images = 40
held_out = 8
[budget]
macs = {macs}
[axes]
methods = ["no_adaptation", "default", "paper"]
corruptions = ["gaussian_noise", "contrast"]
layers = ["B2"]
seeds = {seeds}
[options]
batch = 8
queries = 4
"""
# Methods from both starts, on one corruption; tables may be added.
FAIR_GRID = """
[model]
path = "{model}"
[data]
path = "{data}"
[protocol]
images = 40
held_out = 8
[budget]
macs = 2.5e7
[axes]
methods = ["no_adaptation", "preparation_only", "default", "paper"]
preparations = ["none", "align+head"]
corruptions = ["gaussian_noise"]
layers = ["B2,head"]
seeds = [1, 2]
[options]
align_images = 30
[method.default]
batch = 8
queries = 4
[method.paper]
batch = 8
queries = 4
"""
FAIR_RUNS = 11  # 2 methods from 2 starts with 2 seeds, 2 of the start alone, and 1 without any
FAIR_RATES = 4  # 2 methods from 2 starts
RUNS = 10  # 2 corruptions, 2 methods with 2 seeds and one that has none
# As `pmt-lab`, but each step takes a while and leaves a checkpoint: time to be killed in mid-run.
SLOW = """
import sys, time
import pmt.train.run.loop
from pmt_lab.cli import main
from pmt.train.run.folder import RunFolder
pmt.train.run.loop._SECONDS_BETWEEN_CHECKPOINTS = 0.0
def slow(self, record, append=RunFolder.append):
    append(self, record)
    time.sleep(0.1)
RunFolder.append = slow
sys.exit(main(sys.argv[1:]))
"""
# Fields that the time of day or the machine decides.
_OF_THE_MOMENT = ("seconds", "train_seconds", "threads", "model", "data")


def write_grid(folder: Path, *, macs: float = 2.5e7, seeds: str = "[1, 2]") -> Path:
    path = folder / "grid.toml"
    model, data = write_model(folder), write_data(folder)
    path.write_text(GRID.format(model=model, data=data, macs=macs, seeds=seeds))
    return path


def write_fair_grid(folder: Path, *tables: str, changes: dict[str, str] | None = None) -> Path:
    """Write FAIR_GRID for a model that can be aligned, with further tables and changed lines."""
    data = write_data(folder)
    plain = residual_network()
    images = pmt.datasets.load(data / "train.npz").images
    path = folder / "aligned.pmt"
    with_statistics(plain, measure_statistics(plain, images)).save(path)
    text = FAIR_GRID.format(model=path, data=data)
    for old, new in (changes or {}).items():
        assert old in text
        text = text.replace(old, new)
    grid = folder / "grid.toml"
    grid.write_text("\n".join((text, *tables)))
    return grid


def left_by(out: Path) -> dict[str, Any]:
    """Everything that must be the same however a sweep came to its end, by run."""
    found: dict[str, Any] = {}
    for folder in sorted(path for path in out.iterdir() if path.is_dir()):
        result = json.loads((folder / "result.json").read_text())
        for key in _OF_THE_MOMENT:
            del result[key]
        for phase in result.get("phases", []):
            del phase["seconds"]
        models = [p.read_bytes() for p in sorted(folder.glob("*.pmt"))]
        found[folder.name] = result, models, _metrics(folder)
    return found


def _metrics(folder: Path) -> list[dict[str, Any]]:
    path = folder / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.is_file() else []
    return [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in lines]
