"""Images that a network was trained on are not those that it adapts to and is chosen on."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import pmt
from pmt.datasets import Dataset
from pmt.model.seen_images import range_of_images, seen_images
from pmt.protocol import DataSource, split
from pmt.protocol.data_source import ImagePool

TRAIN, TEST = pmt.datasets.bundled("train"), pmt.datasets.bundled("test")


def model_of(data: Dataset, *ranges: tuple[int, int]) -> pmt.Model:
    """Return a model that has seen such ranges of a data set."""
    graph = pmt.load("fashion_mnist_dscnn").to_graph()
    seen = [range_of_images(data, *one) for one in ranges]
    graph.metadata = {**graph.metadata, "seen_images": seen}
    return pmt.Model.from_graph(graph)


def idx(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture
def source(tmp_path):
    for name, data in (("train", TRAIN), ("t10k", TEST)):
        (tmp_path / f"{name}-images-idx3-ubyte").write_bytes(idx(data.images[:, :, :, 0]))
        (tmp_path / f"{name}-labels-idx1-ubyte").write_bytes(idx(data.labels))
    return DataSource(str(tmp_path))


def test_a_range_is_found_by_its_checksum_at_its_place():
    model = model_of(TRAIN, (0, 300), (500, 10))
    found = seen_images(model.metadata, TRAIN)
    assert np.flatnonzero(found).tolist() == [*range(300), *range(500, 510)]
    assert not seen_images(model.metadata, TRAIN.take(200)).any()
    assert not seen_images(model.metadata, TRAIN.shuffled(0)).any()
    assert not seen_images(model.metadata, TEST).any()


@pytest.mark.parametrize(
    "ranges", ["all", [3], [{"first": -1, "count": 3}], [{"first": 0, "count": 0, "crc32": 0}], {}]
)
def test_what_is_no_range_says_nothing(ranges):
    assert not seen_images({"seen_images": ranges}, TRAIN).any()


def test_a_source_takes_others(source):
    model = model_of(TRAIN, (0, 600))
    unseen = {image.tobytes() for image in TRAIN.images[600:]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        everything, few = source.load("train", model), source.load("train", model, limit=50)
        test = source.load("test", model)
    assert (len(everything), len(few), len(test)) == (400, 50, 1000)
    assert {image.tobytes() for image in [*everything.images, *few.images]} <= unseen


def test_a_split_adapts_and_chooses_on_others(source):
    model = model_of(TRAIN, (0, 600))
    pools = [source.pool(name, model) for name in ("train", "test")]
    parts = split("default", *pools, images=100, held_out=20)
    assert len(parts.train) == 80
    assert min(parts.train_indices.min(), parts.held_out_indices.min()) >= 600
    message = r"the network was trained on 600 of these 1,000 images before"
    with pytest.warns(UserWarning, match=message):
        split("default", *pools, images=500, held_out=20)


def test_too_few_others_are_told(source):
    with pytest.warns(UserWarning, match=r"was trained on 990 of these 1,000 images before: what"):
        assert len(source.load("train", model_of(TRAIN, (0, 990)), limit=50)) == 50


def test_fit_tells_of_them():
    trainer = pmt.ZOTrainer(layers="head", epochs=1, batch=20, preparation="none")
    with pytest.warns(UserWarning, match="was trained on 60 of these 100 images before"):
        trainer.fit(model_of(TRAIN, (0, 60)), TRAIN.take(100), progress=False)


@pytest.mark.parametrize("name", ["cifar10_mcunet", "cifar10_small"])
def test_the_cifar10_networks_store_their_images(name):
    metadata = pmt.load(name).metadata
    assert metadata["seen_images"] == [{"first": 0, "count": 45000, "crc32": 3613970301}]


def test_a_pool_without_a_network_has_seen_nothing():
    pool = ImagePool(clean=TRAIN)
    assert len(pool.unseen(10)) == 1000
    assert len(replace(pool, seen=np.arange(1000) < 900).unseen(10)) == 100
