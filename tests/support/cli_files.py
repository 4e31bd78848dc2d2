"""A small model and small data sets on disk, and ways to run the command on them."""

import os
import signal
import subprocess
import sys
from collections.abc import Container
from pathlib import Path

import numpy as np
from networks import labels, pixels, residual_network

import pmt
from pmt.datasets import Dataset, save_npz

GOLDEN = Path(__file__).parents[1] / "golden"


def write_model(folder: Path) -> Path:
    path = folder / "small.pmt"
    residual_network().save(path)
    return path


def write_data(folder: Path, *, train: int = 60, test: int = 20, size: int = 8) -> Path:
    """train.npz and test.npz of random images that the model's 4 classes label."""
    path = folder / "data"
    path.mkdir()
    model = residual_network(size=size)
    names = ("ant", "bee", "cat", "dog")
    for seed, (split, count) in enumerate((("train", train), ("test", test))):
        images = pixels(model, count, seed=seed)
        save_npz(
            Dataset(images, labels(model, count, seed=seed), names, "random"), path / f"{split}.npz"
        )
    return path


def program(
    *arguments: object,
    code: str | None = None,
    ignored: Container[signal.Signals] = (),
    module: str = "pmt",
) -> subprocess.Popen[str]:
    """Start ``pmt`` as a process of its own, or a Python program that calls it.

    It starts with the signals of a terminal as a shell sets them in the foreground, whatever this
    process does with them, and ignores those given, as in the background or under nohup.
    """

    def set_signals() -> None:
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

    start = [sys.executable, "-c", code] if code else [sys.executable, "-m", module]
    package = str(Path(pmt.__file__).parents[1])
    return subprocess.Popen(
        [*start, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=set_signals,
        env={**os.environ, "PYTHONPATH": package, "COLUMNS": "100", "OMP_NUM_THREADS": "1"},
    )


def check_golden(name: str, text: str, folder: Path = GOLDEN) -> None:
    """Compare with tests/golden; PMT_UPDATE_GOLDEN=1 writes the file instead."""
    path = folder / name
    if os.environ.get("PMT_UPDATE_GOLDEN") == "1":
        path.write_text(text)
    assert text == path.read_text()


def same_weights(a: pmt.Model, b: pmt.Model) -> bool:
    return all(
        np.array_equal(a.core.weights(layer.index), b.core.weights(layer.index))
        for layer in a.layers
    )
