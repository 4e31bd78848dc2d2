"""Training on images that lie in a file: the same bytes as of arrays, in little memory."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from networks import residual_network
from toy_trainer import Stop, stop_at

import pmt
from pmt.datasets import Dataset, arrays

OPTIONS = {"batch": 10, "epochs": 2, "queries": 4, "learning_rate": 0.3}
IMAGES = np.random.default_rng(1).integers(0, 256, (80, 8, 8, 3)).astype(np.uint8)


def in_a_file(folder: Path, images: np.ndarray) -> Dataset:
    np.save(folder / "images.npy", images)
    x = np.load(folder / "images.npy", mmap_mode="r")
    return Dataset.from_arrays(x, np.arange(len(images)) % 4)


def test_an_interrupted_run_goes_on_bit_for_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "_HELD", 0)  # parts lie in files, too
    expected = residual_network()
    held = Dataset.from_arrays(IMAGES, np.arange(80) % 4)
    pmt.ZOTrainer(**OPTIONS).fit(expected, held, progress=False)

    folder = tmp_path / "run"
    data = in_a_file(tmp_path, IMAGES)
    with pytest.raises(Stop):
        pmt.ZOTrainer(**OPTIONS).fit(residual_network(), data, out=folder, progress=stop_at(9))
    assert not (folder / "DONE").exists()
    model = residual_network()
    again = in_a_file(tmp_path, IMAGES)
    pmt.ZOTrainer(**OPTIONS).fit(model, again, out=folder, progress=False)
    assert model.image() == expected.image()


@pytest.mark.filterwarnings("ignore:.* have the same pixels as others")
def test_a_run_holds_batches_and_not_the_data(tmp_path):
    images = np.random.default_rng(1).integers(0, 256, (80, 32, 32, 3)).astype(np.uint8)
    data = in_a_file(tmp_path, np.tile(images, (300, 1, 1, 1)))
    assert data.images.nbytes > 70_000_000
    trainer = pmt.ZOTrainer(batch=10, queries=2, epochs=1)
    tracemalloc.start()
    try:
        model = residual_network(size=32, width=2)
        result = trainer.fit(model, data, callbacks=[lambda event: event.step >= 3])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [phase["phase"] for phase in result.phases] == ["start", "head"]
    assert peak < 35_000_000


def test_parts_of_a_data_set_in_a_file_are_in_files(tmp_path):
    image = np.arange(96 * 96 * 3, dtype=np.uint64).astype(np.uint8).reshape(96, 96, 3)
    data = in_a_file(tmp_path, np.stack([image + np.uint8(i % 7) for i in range(3000)]))
    tracemalloc.start()
    try:
        first, second = data.split(0.8, seed=1)
        shuffled = first.shuffled(2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30_000_000 < data.images.nbytes
    assert arrays.is_mapped(first.images)
    assert arrays.is_mapped(shuffled.images)
    assert not arrays.is_mapped(second[:10].subset([1, 0]).images)
    assert [path.name for path in tmp_path.iterdir()] == ["images.npy"]
    order = np.random.Generator(np.random.PCG64(1)).permutation(3000)
    np.testing.assert_array_equal(first.labels, data.labels[order[:2400]])
    for i in (0, 7, 2399):
        np.testing.assert_array_equal(first.images[i], data.images[order[i]])
