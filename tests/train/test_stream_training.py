"""Training on a stream that lies in files: the same bytes as of arrays, in little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from networks import residual_network

import pmt
from pmt.datasets import Dataset, from_stream, mapped

OPTIONS = {"batch": 10, "epochs": 2, "queries": 4, "learning_rate": 0.3}
IMAGES = np.random.default_rng(1).integers(0, 256, (80, 8, 8, 3)).astype(np.uint8)


def stream(first: int = 0) -> Iterator[tuple[np.ndarray, int]]:
    for number in range(first, 80):
        yield IMAGES[number], number % 4


class Stop(Exception):
    pass


def test_an_interrupted_run_goes_on_from_the_cache_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped, "_HELD", 0)  # parts lie in files, too
    expected = residual_network()
    held = Dataset.from_arrays(IMAGES, np.arange(80) % 4)
    pmt.ZOTrainer(**OPTIONS).fit(expected, held, progress=False)

    def interrupted(step: int, record: object) -> None:
        if step == 9:
            raise Stop

    folder = tmp_path / "run"
    data = from_stream(stream, tmp_path / "c")
    with pytest.raises(Stop):
        pmt.ZOTrainer(**OPTIONS).fit(residual_network(), data, out=folder, progress=interrupted)
    assert not (folder / "DONE").exists()
    model = residual_network()
    again = from_stream(stream, tmp_path / "c")
    pmt.ZOTrainer(**OPTIONS).fit(model, again, out=folder, progress=False)
    assert model.image() == expected.image()


def test_a_run_holds_batches_and_not_the_data(tmp_path: Path) -> None:
    images = np.random.default_rng(1).integers(0, 256, (80, 32, 32, 3)).astype(np.uint8)
    blocks = ((images, np.arange(80) % 4) for _ in range(300))
    data = from_stream(blocks, tmp_path / "c")
    assert data.images.nbytes > 70_000_000
    trainer = pmt.ZOTrainer(batch=10, queries=2, epochs=1, head_epochs=1)
    tracemalloc.start()
    try:
        model = residual_network(size=32, width=2)
        result = trainer.fit(model, data, callbacks=[lambda event: event.step >= 3])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [phase["phase"] for phase in result.phases] == ["start", "head"]
    assert peak < 35_000_000
