"""Runs that are killed at any change that they make to a disk: the same call goes on."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from networks import random_dataset, residual_network

import pmt
from pmt.train.run.loop import Run
from pmt.train.run.metrics import RunHistory
from pmt.train.run.store import FolderStore

# Kills a run at its first change of the disk, the next one at its second, and so on, until one
# ends by itself; after each, the same call goes on. Prints what each kill left.
KILLER = """
import json, os, sys
from pathlib import Path
from networks import random_dataset, residual_network
import pmt

CALLS = ("os.rename", "os.link", "os.mkdir", "os.remove", "open")
folder = Path(sys.argv[1])

def fit(out):
    model = residual_network()
    data = random_dataset(model, 8)
    trainer = pmt.ZOTrainer(
        layers="head", batch=4, epochs=2, queries=2, threads=1, loss="entropy", diversity=0.5
    )
    choosing = random_dataset(model, 8, 3)
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


@pytest.fixture
def sigterm():
    """Sets the handler of SIGTERM, and puts back the one before."""
    before = signal.getsignal(signal.SIGTERM)
    yield lambda handler: signal.signal(signal.SIGTERM, handler)
    signal.signal(signal.SIGTERM, before)


def short_trainer():
    return pmt.ZOTrainer(layers="head", batch=4, epochs=1, queries=2, preparation="none")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("owner", "method"), [(Run, "record"), (RunHistory, "add"), (FolderStore, "record")]
)
@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_a_signal_while_a_step_is_recorded_keeps_the_step(
    raised, owner, method, after, sigterm, tmp_path, monkeypatch
):
    whole = getattr(owner, method)

    def end(number, frame):
        raise raised

    def interrupted(this, record):
        calls = [lambda: whole(this, record)]
        if record["kind"] == "step":
            calls.insert(after, lambda: signal.raise_signal(signal.SIGTERM))
        for call in calls:
            call()

    sigterm(end)
    start = residual_network()
    out = tmp_path / "run"
    monkeypatch.setattr(owner, method, interrupted)
    with pytest.raises(raised):
        short_trainer().fit(start.copy(), random_dataset(start, 8), out=out, progress=False)
    monkeypatch.undo()
    assert pmt.RunFolder(out).load_checkpoint()[1] == 1
    resumed = short_trainer().fit(start.copy(), random_dataset(start, 8), out=out, progress=False)
    steps = [r["step"] for r in pmt.RunFolder(out).read_metrics() if r["kind"] == "step"]
    assert steps == [0, 1]
    uncut = short_trainer().fit(start.copy(), random_dataset(start, 8), progress=False)
    assert resumed.model.image() == uncut.model.image()


def test_training_leaves_the_handlers_of_signals_alone(tmp_path, monkeypatch):
    """One that is replaced for a while is lost where another raises meanwhile."""
    replaced = []
    monkeypatch.setattr(signal, "signal", lambda *handler: replaced.append(handler))
    model = residual_network()
    short_trainer().fit(model, random_dataset(model, 8), out=tmp_path / "run", progress=False)
    assert replaced == []
