"""A small model and small data sets on disk, and ways to run the command on them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from networks import labels, pixels, residual_network

import pmt
from pmt.datasets import Dataset, save_npz

GOLDEN = Path(__file__).parent / "golden"


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
            Dataset(images, labels(model, count, seed=seed), names, "random"),
            path / f"{split}.npz",
        )
    return path


def program(*arguments: object, code: str | None = None) -> subprocess.Popen[str]:
    """Start ``pmt`` as a process of its own, or a Python program that calls it."""
    start = [sys.executable, "-c", code] if code else [sys.executable, "-m", "pmt"]
    package = str(Path(pmt.__file__).parents[1])
    return subprocess.Popen(
        [*start, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": package, "COLUMNS": "100", "OMP_NUM_THREADS": "1"},
    )


def check_golden(name: str, text: str) -> None:
    """Compare with tests/golden; PMT_UPDATE_GOLDEN=1 writes the file instead."""
    path = GOLDEN / name
    if os.environ.get("PMT_UPDATE_GOLDEN") == "1":
        path.write_text(text)
    assert text == path.read_text()


def same_weights(a: pmt.Model, b: pmt.Model) -> bool:
    return all(
        np.array_equal(a.core.weights(layer.index), b.core.weights(layer.index))
        for layer in a.layers
    )
