"""Images of a data source: read once, at their own size, and those that a model has seen."""

import warnings
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from networks import residual_network
from PIL import Image

import pmt
from pmt.datasets import Dataset
from pmt.datasets.image_files import common_size
from pmt.model.data_checks import range_of_images, seen_images
from pmt.protocol import split
from pmt.protocol.data_source import DataSource, ImagePool

MODULE = import_module("pmt.datasets.image_files")


def write(path: Path, size: tuple[int, int], *, orientation: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    exif[0x0112] = orientation
    pixels = np.arange(size[0] * size[1] * 3, dtype=np.uint8).reshape(*size[::-1], 3)
    Image.fromarray(pixels).save(path, exif=exif)
    return path


def folder_of(root: Path, *sizes: tuple[int, int]) -> Path:
    for number, size in enumerate(sizes):
        write(root / "train" / "a" / f"{number}.png", size)
        write(root / "train" / "b" / f"{number}.png", size)
    return root


@pytest.mark.parametrize(
    ("sizes", "read"), [([(12, 12), (12, 12)], (12, 12)), ([(12, 12), (9, 12)], (8, 8))]
)
def test_images_are_read_once_at_their_own_size_or_resized(tmp_path, monkeypatch, sizes, read):
    calls = []
    original = MODULE.decode_files

    def noted(folder, paths, fit, threads=0):
        calls.append(fit.size)
        return original(folder, paths, fit, threads)

    monkeypatch.setattr(MODULE, "decode_files", noted)
    source = DataSource(str(folder_of(tmp_path, *sizes)), "fog", 5)
    model = residual_network()
    assert source.pool("train", model).clean.images.shape[1:3] == read
    assert calls == [None if read == (12, 12) else (8, 8)]
    assert source.load("train", model).images.shape == (4, 8, 8, 3)


def test_the_error_of_the_only_read_is_told(tmp_path, monkeypatch):
    """A folder too large for the memory is no reason to corrupt smaller images than elsewhere."""
    monkeypatch.setattr(MODULE, "free_memory", lambda: 100)
    source = DataSource(str(folder_of(tmp_path, (12, 12))), "fog", 5)
    with pytest.raises(ValueError, match=r"2 images of 12x12x3 take 0.0 GB, 0.0 GB of memory"):
        source.load("train", residual_network())


def test_a_damaged_file_is_named_whatever_the_sizes_are(tmp_path):
    folder = folder_of(tmp_path, (12, 12), (12, 12))
    (folder / "train" / "b" / "1.png").write_bytes(b"broken")
    with pytest.raises(ValueError, match=r"train/b/1.png: cannot be decoded"):
        DataSource(str(folder), "fog", 5).load("train", residual_network())


def test_one_size_is_that_of_upright_images(tmp_path):
    lying = write(tmp_path / "a.jpg", (12, 8), orientation=6)
    standing = write(tmp_path / "b.jpg", (8, 12))
    assert common_size([lying, standing]) == (12, 8)
    assert common_size([write(tmp_path / "c.jpg", (12, 8)), standing]) is None
    assert common_size([]) is None


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
