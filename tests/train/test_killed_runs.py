"""Runs that were killed go on with the same bytes; those of other options or data do not."""

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_files import same_weights
from networks import random_dataset, residual_network
from toy_trainer import Stop, Toy, ToyOptions, data, flat, stop_at

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


TRAINER = {"layers": "head", "batch": 4, "epochs": 1, "queries": 2, "threads": 1}


def fit(out, *, model=None, train=None, valid=None, source=None, **changes):
    return pmt.ZOTrainer(**{**TRAINER, **changes}).fit(
        model or residual_network(),
        train or data(),
        valid=valid,
        out=out,
        source=source,
        progress=False,
    )


def relabeled(train):
    return dataclasses.replace(train, labels=(train.labels + 1) % 4)


def other_model():
    model = residual_network()
    weights = model.core.weights(0)
    model.core.set_parameters(0, (weights // 2).astype(np.int8), model.core.bias(0))
    return model


CRC = "there CRC-32 [0-9a-f]{8}, here CRC-32 [0-9a-f]{8}"


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize(
    ("changes", "differences"),
    [
        ({"model": other_model()}, f"model: {CRC}"),
        ({"train": data(13, seed=5)}, f"training images: {CRC}; training labels: {CRC}"),
        ({"train": relabeled(data())}, f"training labels: {CRC}"),
        ({"valid": None}, "validation images: .*, here none; validation labels: .*, here none"),
        ({"valid": data(6, 9)}, f"validation images: {CRC}; validation labels: {CRC}"),
        (
            {"queries": 4, "seed": 9},
            "option queries: there 2, here 4; option seed: there 1, here 9",
        ),
        ({"source": {"from": "b"}}, "source from: there 'a', here 'b'"),
        ({"source": {}}, "source from: there 'a', here none"),
    ],
    ids=["model", "images", "labels", "no valid", "valid", "options", "source", "no source"],
)
def test_what_differs_is_named_and_nothing_changes(tmp_path, finished, changes, differences):
    out, began = tmp_path / "run", {"valid": data(5, 9), "source": {"from": "a"}}
    if finished:
        fit(out, **began)
    else:
        with pytest.raises(Stop):
            pmt.ZOTrainer(**TRAINER).fit(
                residual_network(), data(), out=out, progress=stop_at(2), **began
            )
    files = {path: path.read_bytes() for path in out.iterdir()}
    given = {**began, **changes}
    model = given.pop("model", residual_network())
    before = model.image()
    message = (
        rf"^out='{re.escape(str(out))}' holds a run with other options or data; choose another "
        rf"folder, give what it began with, or load the model that is in it: {differences}$"
    )
    with pytest.raises(pmt.errors.OtherRunError, match=message):
        fit(out, model=model, **given)
    assert model.image() == before
    assert {path: path.read_bytes() for path in out.iterdir()} == files


def test_the_model_may_be_the_one_that_the_run_saved(tmp_path):
    whole = fit(tmp_path / "whole")
    model = residual_network()
    with pytest.raises(Stop):
        pmt.ZOTrainer(**TRAINER).fit(model, data(), out=tmp_path / "run", progress=stop_at(2))
    shutil.copytree(tmp_path / "run", tmp_path / "loaded")
    assert fit(tmp_path / "run", model=model).model.image() == whole.model.image()
    loaded = fit(tmp_path / "loaded", model=pmt.load(tmp_path / "loaded"))
    assert same_weights(loaded.model, whole.model)
    assert fit(tmp_path / "run", model=whole.model).model is whole.model
    with pytest.raises(ValueError, match="model: there CRC-32"):
        fit(tmp_path / "run", model=other_model())


def test_another_trainer_is_named(tmp_path):
    fit(tmp_path / "run")
    with pytest.raises(ValueError, match=r"trainer: there 'zeroth_order', here 'toy'$"):
        Toy().run(out=tmp_path / "run")


def test_a_trainer_of_the_users_own_resumes_and_its_options_are_read(tmp_path):
    whole = Toy().run(out=tmp_path / "whole")
    with pytest.raises(Stop):
        Toy().run(out=tmp_path / "run", progress=stop_at(4))
    run = Toy().run(out=tmp_path / "run")
    assert run.model.image() == whole.model.image()
    again = Toy().run(out=tmp_path / "run")
    assert again.epochs == run.epochs
    folder = pmt.RunFolder(tmp_path / "run")
    assert folder.trainer() == "toy"
    assert '\n[run]\ntrainer = "toy"\n\n' in (folder.path / "config.toml").read_text()
    assert folder.read_config(options=ToyOptions) == (ToyOptions(), {})
    message = (
        r"trainer 'toy' is unknown; it may .*or the class of its options: read_config\(options="
    )
    with pytest.raises(ValueError, match=message):
        folder.read_config()
    with pytest.raises(ValueError, match=r"option seed: there 1, here 2$"):
        Toy(seed=2).run(out=tmp_path / "run")


def test_a_run_that_chooses_on_given_images_is_another(tmp_path):
    Toy(losses=flat(4)).run(held_out=data(5, 9), out=tmp_path / "run")
    with pytest.raises(ValueError, match=r"held-out images: there CRC-32 \w+, here none"):
        Toy().run(out=tmp_path / "run")
