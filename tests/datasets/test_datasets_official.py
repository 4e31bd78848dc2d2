"""The official layouts of image data sets: made copies, whole and damaged; real photographs."""

import sys

import numpy as np
import pytest
from made_layouts import (
    numbers_of,
    write_cars,
    write_cub,
    write_flowers,
    write_food,
    write_image,
    write_pets,
)
from problems import problem_of
from scipy.io import loadmat, savemat

from pmt.datasets import FLOWERS102_CLASSES, Dataset, image_files, load

WRITERS = {
    "cars": write_cars,
    "cub": write_cub,
    "flowers": write_flowers,
    "food": write_food,
    "pets": write_pets,
}


def told(data: Dataset) -> tuple[list[int], list[int]]:
    return numbers_of(data.images), data.labels.tolist()


@pytest.mark.parametrize(
    ("name", "train", "test", "class_names"),
    [
        ("cub", ([0, 1], [0, 1]), ([2, 3], [0, 1]), ("Black_footed_Albatross", "Laysan_Albatross")),
        ("food", ([0, 1, 2], [0, 1, 0]), ([3, 4, 5], [0, 1, 0]), ("apple_pie", "waffles")),
        ("pets", ([0, 1, 2], [0, 1, 0]), ([3, 4], [1, 0]), ("Abyssinian", "american_bulldog")),
        ("flowers", ([1, 4, 3], [76, 0, 101]), ([5, 2], [1, 0]), FLOWERS102_CLASSES),
    ],
)
def test_images_labels_and_names(tmp_path, name, train, test, class_names):
    WRITERS[name](tmp_path)
    data = load(tmp_path)
    assert data.images.shape[1:] == (16, 24, 3)
    assert told(data) == train
    assert told(load(tmp_path, split="test", size=(8, 12))) == test
    assert data.class_names == class_names


def test_there_are_102_flowers():
    assert len(set(FLOWERS102_CLASSES)) == 102
    assert FLOWERS102_CLASSES[76] == "passion flower"
    assert FLOWERS102_CLASSES[101] == "blackberry lily"


def test_cars(tmp_path):
    write_cars(tmp_path)
    train = load(tmp_path)
    assert train.labels.tolist() == [0, 1]
    assert train.class_names == ("AM General Hummer SUV 2000", "Ram C/V Cargo Van Minivan 2012")
    assert load(tmp_path, split="test").labels.tolist() == [1, 0]


def test_cars_as_a_mirror_packs_them(tmp_path):
    write_cars(tmp_path)
    (tmp_path / "cars_train").rename(tmp_path / "inner")
    (tmp_path / "cars_train").mkdir()
    (tmp_path / "inner").rename(tmp_path / "cars_train" / "cars_train")
    test_path = tmp_path / "devkit" / "cars_test_annos_withlabels.mat"
    test_path.rename(tmp_path / test_path.name)
    assert load(tmp_path).labels.tolist() == [0, 1]
    assert load(tmp_path, split="test").labels.tolist() == [1, 0]
    (tmp_path / test_path.name).unlink()
    with pytest.raises(FileNotFoundError, match=r"withlabels.mat: .*of the devkit has no labels"):
        load(tmp_path, split="test")


@pytest.mark.parametrize(
    ("name", "writer"),
    [("CUB_200_2011", write_cub), ("flowers-102", write_flowers), ("food-101", write_food)],
)
def test_the_parent_folder_will_do(tmp_path, name, writer):
    writer(tmp_path / name)
    assert len(load(tmp_path)) >= 2


def test_a_limit_decodes_only_what_it_chooses(tmp_path):
    write_food(tmp_path)
    files = image_files(tmp_path)
    assert len(files) == 3
    assert repr(files) == "ImageFiles('food101', 3 images, 2 classes)"
    chosen = load(tmp_path, limit=2)
    kept = numbers_of(chosen.images)
    assert chosen.labels.tolist() == [files.labels[number] for number in kept]
    (left_out,) = {0, 1, 2} - set(kept)
    files.paths[left_out].write_bytes(b"broken")
    assert numbers_of(load(tmp_path, limit=2).images) == kept
    with pytest.raises(ValueError, match="cannot be decoded"):
        load(tmp_path)
    with pytest.raises(ValueError, match="limit=-1 must be 0"):
        load(tmp_path, limit=-1)
    with pytest.raises(ValueError, match="indices holds 3: must be 0 to 2"):
        files.subset([3])
    assert files.subset([2, 0]).labels.tolist() == [0, 0]


def test_other_class_names(tmp_path):
    write_pets(tmp_path)
    assert load(tmp_path, class_names=("cat", "dog")).class_names == ("cat", "dog")
    with pytest.raises(ValueError, match="has 2 classes, class_names has 3"):
        load(tmp_path, class_names=("cat", "dog", "eel"))


def test_arrays_are_not_image_files(tmp_path):
    np.savez(tmp_path / "one.npz", images=np.zeros((1, 2, 2), np.uint8), labels=[0])
    with pytest.raises(ValueError, match="has arrays and not image files; use"):
        image_files(tmp_path / "one.npz")


@pytest.mark.parametrize(
    ("name", "path", "content", "message"),
    [
        ("cub", "images.txt", "", "images.txt: holds no line"),
        ("cub", "images.txt", "1 a.jpg\nx b.jpg\n", "holds 'x' in place of a whole number"),
        ("cub", "images.txt", "1 a.jpg\n1 b.jpg\n", "holds a number twice"),
        ("cub", "train_test_split.txt", "1 1\n2 1\n3 0\n5 0\n", "same images .* for instance 4"),
        ("cub", "image_class_labels.txt", "1\n2 1\n3\n", "2 problems: .*1: line 1 has 1 words"),
        ("cub", "image_class_labels.txt", "1 1\n2 3\n3 1\n4 2\n", "class 3 is out of range 1 to 2"),
        ("cub", "classes.txt", "1 001.Owl\n2 002.Owl\n", "names class 'Owl' twice"),
        ("cub", "classes.txt", "1 a\n2 b\n3 c\n", "lists no image of class 'c'"),
        ("food", "meta/train.txt", "apple_pie/0\nbread/1\n", "lists class 'bread', which classes"),
        (
            "food",
            "meta/train.txt",
            "apple_pie/7\nwaffles/1\n",
            "7.jpg: no such file, but train.txt",
        ),
        ("food", "meta/train.txt", "waffles/../../x\n", "outside of the folder"),
        ("pets", "annotations/trainval.txt", "a_1 1 1 1\nb_1 1 1 1\n", "breed 1 is 'a', but b_1"),
        ("pets", "annotations/trainval.txt", "a_1 4 1 1\n", "annotations: no image of breed 3"),
    ],
)
def test_damaged_lists(tmp_path, name, path, content, message):
    (WRITERS[name](tmp_path) / path).write_text(content)
    with pytest.raises(ValueError, match=message):
        load(tmp_path)


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("imagelabels.mat", {"labels": np.array([[1, 2, 103, 4, 5]])}, "class 103 is out of range"),
        ("imagelabels.mat", {"labels": np.array([[1, 2]])}, "lists image 4, imagelabels.mat has 2"),
        ("imagelabels.mat", {"labels": np.array([[1.5, 2, 3, 4]])}, "else than whole numbers"),
        ("imagelabels.mat", {"labels": np.array(["a", "b"])}, "something else than numbers"),
        ("setid.mat", {"trnid": np.array([[1]])}, "holds no variable 'valid'"),
        ("setid.mat", {"trnid": np.array([[0]]), "valid": np.array([[1]])}, "lists image 0"),
    ],
)
def test_damaged_mat_files(tmp_path, path, content, message):
    savemat(write_flowers(tmp_path) / path, content)
    with pytest.raises(ValueError, match=message):
        load(tmp_path)


def test_truncated_mat_files_are_one_clear_error(tmp_path):
    path = write_cars(tmp_path) / "devkit" / "cars_train_annos.mat"
    savemat(path, {"annotations": loadmat(path)["annotations"]}, do_compression=True)
    whole = path.read_bytes()
    path.write_bytes(bytes(2 << 20))
    with pytest.raises(ValueError, match="2,097,152 bytes, too many for an annotation file"):
        image_files(tmp_path)
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        problem = problem_of(image_files, tmp_path)
        assert problem is not None
        assert "cars_train_annos.mat: " in problem


def test_without_scipy_the_error_names_the_extra(tmp_path, monkeypatch):
    write_flowers(tmp_path)
    for name in ("scipy", "scipy.io"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError, match=r'SciPy: pip install "poor-mans-training\[data'):
        load(tmp_path)


def test_cars_without_fields_or_files(tmp_path):
    devkit = write_cars(tmp_path) / "devkit"
    savemat(devkit / "cars_train_annos.mat", {"annotations": np.array([[1, 2]])})
    with pytest.raises(ValueError, match="its annotations have no field 'fname'"):
        load(tmp_path)
    (devkit / "cars_meta.mat").unlink()
    with pytest.raises(FileNotFoundError, match=r"cars_meta.mat: no such file; put it there, from"):
        load(tmp_path, split="test")


def test_missing_files_of_a_split(tmp_path):
    (write_flowers(tmp_path / "f") / "setid.mat").unlink()
    with pytest.raises(FileNotFoundError, match=r"setid.mat: no such file"):
        load(tmp_path / "f")
    (write_pets(tmp_path / "p") / "annotations" / "test.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"test.txt: no such file"):
        load(tmp_path / "p", split="test")


def test_ten_missing_images_are_named_and_the_others_counted(tmp_path):
    write_food(tmp_path)
    keys = [f"waffles/{number}" for number in range(100, 125)]
    (tmp_path / "meta" / "train.txt").write_text("\n".join(["apple_pie/0", *keys]))
    with pytest.raises(ValueError, match=r": 25 problems: images/waffles/100.jpg: no") as caught:
        load(tmp_path)
    assert str(caught.value).count("no such file") == 10
    assert "109.jpg: no such file, but train.txt lists it; and 15 more; unpack the images" in str(
        caught.value
    )


def test_an_image_that_the_lists_leave_out_is_left_out(tmp_path):
    write_image(write_pets(tmp_path) / "images" / "Abyssinian_99.jpg", 5)
    assert len(load(tmp_path)) == 3


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
