"""Runs that are killed at any change that they make to a disk: the same call goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from networks import labels, pixels, residual_network

import pmt
from pmt.datasets import Dataset

# Kills a run at its first change of the disk, the next one at its second, and so on, until one
# ends by itself; after each, the same call goes on. Prints what each kill left.
KILLER = """
import json, os, sys
from pathlib import Path
from networks import labels, pixels, residual_network
import pmt
from pmt.datasets import Dataset

CALLS = ("os.rename", "os.link", "os.mkdir", "os.remove", "open")
folder = Path(sys.argv[1])

def fit(out):
    model = residual_network()
    data = Dataset(pixels(model, 8), labels(model, 8), tuple("abcd"), "random")
    trainer = pmt.ZOTrainer(
        layers="head", batch=4, epochs=2, queries=2, threads=1, loss="entropy", diversity=0.5
    )
    choosing = Dataset(pixels(model, 8, 3), labels(model, 8), tuple("abcd"), "random")
    trainer.fit(model, data, held_out=choosing, out=out, progress=False)

def killed_at(number, out):
    child = os.fork()
    if child == 0:
        left = [number]
        def count(call, arguments):
            if call in CALLS and str(folder) in str(arguments[0]):
                if left[0] == 0:
                    os._exit(9)
                left[0] -= 1
        sys.addaudithook(count)
        fit(out)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9

fit(folder / "whole")
number = 0
while killed_at(number, folder / str(number) / "run"):
    out = folder / str(number) / "run"
    print(json.dumps(sorted(path.name for path in out.iterdir()) if out.exists() else []))
    fit(out)
    number += 1
"""


def contents(folder: Path) -> dict[str, object]:
    files: dict[str, object] = {p.name: p.read_bytes() for p in folder.iterdir()}
    files["metrics.jsonl"] = [
        {k: v for k, v in record.items() if k != "seconds"}
        for record in pmt.RunFolder(folder).read_metrics()
    ]
    return files


def test_a_run_killed_at_any_change_of_the_disk_is_started_again_or_goes_on(tmp_path):
    package = Path(pmt.__file__).parents[1]
    process = subprocess.run(
        [sys.executable, "-c", KILLER, str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{package}:{Path(__file__).parents[1] / 'support'}"},
    )
    assert process.returncode == 0, process.stderr
    states = [
        frozenset(name for name in json.loads(line) if not name.endswith(".part"))
        for line in process.stdout.splitlines()
    ]
    begun = {"env.json", "checkpoint.pmt", "metrics.jsonl"}
    assert {
        frozenset(),
        frozenset({"env.json"}),
        frozenset({"env.json", "checkpoint.pmt"}),
        frozenset(begun),
        frozenset({*begun, "config.toml"}),
    } <= set(states)
    assert len(states) > 40
    whole = contents(tmp_path / "whole")
    for number in range(len(states)):
        assert contents(tmp_path / str(number) / "run") == whole
        assert [path.name for path in (tmp_path / str(number)).iterdir()] == ["run"]


def test_ctrl_c_while_a_step_is_recorded_keeps_the_step(tmp_path, monkeypatch):
    append = pmt.RunFolder.append

    def interrupted(folder, record):
        append(folder, record)
        if record["kind"] == "step":
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(pmt.RunFolder, "append", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
    model = residual_network()
    data = Dataset(pixels(model, 8), labels(model, 8), tuple("abcd"), "random")
    trainer = pmt.ZOTrainer(layers="head", batch=4, epochs=1, queries=2, preparation="none")
    try:
        with pytest.raises(KeyboardInterrupt):
            trainer.fit(model, data, out=tmp_path / "run", progress=False)
    finally:
        signal.signal(signal.SIGINT, before)
    assert pmt.RunFolder(tmp_path / "run").load_checkpoint()[1] == 1
