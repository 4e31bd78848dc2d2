"""Writes small files of this version, which later versions must read: tests/kept/VERSION.

    PYTHONPATH=tests/support python tests/kept/make_files.py

Before a release they are made anew where a format changed; those of a release stay as they are.
"""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from networks import labels, pixels, smooth_network

import pmt
from pmt import corruptions
from pmt.baselines.backprop.scheme import LayerUpdate, UpdateScheme
from pmt.cli import main
from pmt.datasets import Dataset, save_npz
from pmt.train.prepare import measure_statistics, with_statistics

HERE = Path(__file__).parent


def network() -> pmt.Model:
    """Return the smallest network that has a layer of each kind of training."""
    model = smooth_network(size=2, channels=1, hidden=2, classes=2)
    return with_statistics(model, measure_statistics(model, pixels(model, 8)))


def images(count: int, seed: int = 0) -> Dataset:
    """Return random images of the network."""
    model = network()
    return Dataset(pixels(model, count, seed), labels(model, count, seed), ("ant", "bee"), "kept")


def trainer() -> pmt.ZOTrainer:
    """Return the trainer of the run, whose state is more than the model."""
    more = {"loss": "entropy", "diversity": 0.5, "preparation": "none"}
    return pmt.ZOTrainer(layers="head", batch=2, queries=2, epochs=2, threads=1, **more)


def make_run(out: Path) -> None:
    """Train until the second step is done: the rest is left to the test."""

    def stop(step: int, record: dict[str, Any]) -> None:
        if step == 2:
            raise KeyboardInterrupt

    try:
        trainer().fit(network(), images(8), held_out=images(4, 9), out=out, progress=stop)
    except KeyboardInterrupt:
        (out / "env.json").write_text('{"pmt": "0.1.0"}\n')


def make_states(path: Path) -> None:
    """Solve a learner's head, and keep it."""
    learner = pmt.Learner(network(), samples=60, storage=path)
    bright = np.arange(60) % 2
    data = pixels(network(), 60) // 4 + 190 * bright[:, None, None, None].astype(np.uint8)
    learner.observe(data, bright)
    learner.learn("head_alone")
    learner.commit()
    learner.confirm()


def make_export(folder: Path, model: Path, data: Path) -> None:
    """Export for a board; keep the card and the lock, with paths of no machine."""
    with tempfile.TemporaryDirectory() as scratch:
        words = f"export {model} --data {data} --target qemu-mps2-an500 --steps 1 --batch 1"
        assert main([*words.split(), "--layers", "head", "--out", f"{scratch}/fw"]) == 0
        shutil.copy(f"{scratch}/fw/card.img", folder)
        lock = json.loads(Path(scratch, "fw", "pmt.lock").read_text())
    names = ("Makefile", "card.img", "model/model.pmt")
    lock["files"] = {name: lock["files"][name] for name in names}
    given = {name: value for name, value in lock["arguments"].items() if value is not None}
    lock["arguments"] = {**given, "model": "model.pmt", "data": "data.npz"}
    (folder / "pmt.lock").write_text(json.dumps(lock, indent=1) + "\n")


def make_files() -> None:
    """Write all of them."""
    folder = HERE / pmt.__version__
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    network().save(folder / "model.pmt")
    save_npz(images(4), folder / "data.npz")
    make_run(folder / "run")
    make_states(folder / "states.bin")
    make_export(folder, folder / "model.pmt", folder / "data.npz")
    scheme = UpdateScheme((LayerUpdate(0, 1, True, (0,)),))
    (folder / "scheme.json").write_text(scheme.text(network()))
    values = np.arange(192, dtype=np.uint8).reshape(1, 8, 8, 3)
    ramp = Dataset(values, np.zeros(1, np.int64), ("ant",), "kept")
    corruptions.ArrayWriter(ramp, folder / "arrays").write("contrast")


if __name__ == "__main__":
    make_files()
