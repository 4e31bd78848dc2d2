"""Real photographs, 128 x 128, as image folders and in the official layouts."""

import numpy as np
import pytest

from pmt.datasets import image_files, load

PACKS = {"cars": "cars196_128", "birds": "cub100_128", "food": "food10_60_40_128"}


@pytest.fixture(scope="module")
def food(shared, unpack, tmp_path_factory):
    folder = tmp_path_factory.mktemp("real") / "food10"
    unpack.image_folder(shared / "data" / "fgvc" / f"{PACKS['food']}.npz", folder)
    return folder


@pytest.fixture(scope="module")
def sampled(shared, unpack, tmp_path_factory):
    """Every tenth image of the large packs."""
    folders = {}
    for name in ("cars", "birds"):
        root = tmp_path_factory.mktemp(name)
        with np.load(shared / "data" / "fgvc" / f"{PACKS[name]}.npz") as pack:
            kept = np.arange(0, len(pack["y"]), 10)
            blob, ends = pack["blob"], pack["off"]
            parts = [blob[ends[i] : ends[i + 1]] for i in kept]
            np.savez(
                root / "sample.npz",
                names=pack["names"],
                y=pack["y"][kept],
                split=pack["split"][kept],
                blob=np.concatenate(parts),
                off=np.cumsum([0, *map(len, parts)]),
            )
        unpack.image_folder(root / "sample.npz", root / name)
        folders[name] = root / name
    return folders


def test_food_as_an_image_folder(food):
    train, test = load(food), load(food, split="test", size=64)
    assert train.images.shape == (600, 128, 128, 3)
    assert test.images.shape == (400, 64, 64, 3)
    assert np.bincount(train.labels).tolist() == [60] * 10
    assert np.bincount(test.labels).tolist() == [40] * 10
    assert train.class_names[:3] == ("apple_pie", "baby_back_ribs", "baklava")
    # Photographs: neither gray nor flat.
    assert train.images.std() > 50
    assert (np.ptp(train.images.reshape(600, -1), axis=1) > 60).all()
    assert abs(train.images[..., 0].mean() - train.images[..., 2].mean()) > 20


def test_food_in_the_layout_of_food_101(food, tmp_path):
    """The same images through the official lists give the same pixels."""
    files = image_files(food)
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "classes.txt").write_text("\n".join(files.class_names) + "\n")
    keys = [f"{path.parent.name}/{path.stem}" for path in files.paths]
    (tmp_path / "meta" / "train.txt").write_text("\n".join(keys) + "\n")
    for name in files.class_names:
        (tmp_path / "images" / name).mkdir(parents=True)
    for key, path in zip(keys, files.paths, strict=True):
        # Pillow goes by the content and not by the name, as it must for some of the Pets.
        (tmp_path / "images" / f"{key}.jpg").symlink_to(path)
    official, folder = load(tmp_path, limit=100), load(food, limit=100)
    assert (official.name, folder.name) == ("food101", "food10")
    np.testing.assert_array_equal(official.images, folder.images)
    np.testing.assert_array_equal(official.labels, folder.labels)


@pytest.mark.parametrize(
    ("name", "classes", "images"), [("cars", 196, (620, 195)), ("birds", 100, (300, 291))]
)
def test_samples_of_the_large_sets(sampled, name, classes, images):
    for split, count in zip(("train", "test"), images, strict=True):
        files = image_files(sampled[name], split=split)
        assert len(files) == count
        assert len(files.class_names) == classes
    data = load(sampled[name], size=(96, 112), crop=0.875, limit=120, threads=2)
    assert data.images.shape == (120, 96, 112, 3)
    assert data.images.std() > 40
    whole = load(sampled[name], size=(96, 112), limit=120)
    assert not np.array_equal(whole.images, data.images)
    np.testing.assert_array_equal(whole.labels, data.labels)
