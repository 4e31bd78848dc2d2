"""CIFAR-10 and CIFAR-100 in their two official layouts, fine and coarse, whole and damaged."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from cifar_files import (
    PLANES,
    RECORD,
    assert_the_record,
    write_binary,
    write_binary_100,
    write_python,
)
from problems import problem_of

from pmt.datasets import CIFAR10_CLASSES, CIFAR100_CLASSES, CIFAR100_COARSE_CLASSES, load
from pmt.datasets.catalog import CIFAR100_COARSE_OF_FINE

ROW = np.zeros((1, 3072), np.uint8)


def write_python_100(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = np.stack([PLANES.reshape(-1), np.zeros(3072, np.uint8)])
    contents = {
        "train": {b"data": rows, b"fine_labels": [91, 8], b"coarse_labels": [1, 18]},
        "test": {"data": rows[1:], "fine_labels": [8], "coarse_labels": [18], "filenames": ["x"]},
        "meta": {
            "fine_label_names": list(CIFAR100_CLASSES),
            "coarse_label_names": list(CIFAR100_COARSE_CLASSES),
        },
    }
    for name, content in contents.items():
        (folder / name).write_bytes(pickle.dumps(content, protocol=2))
    return folder


def test_binary_layout(tmp_path):
    write_binary(tmp_path)
    train, test = load(tmp_path), load(tmp_path, split="test")
    assert train.labels.tolist() == [3, 0, 9]
    assert train.images.shape == (3, 32, 32, 3)
    assert train.class_names == CIFAR10_CLASSES
    assert test.labels.tolist() == [5]
    assert_the_record(train.images[0])
    assert_the_record(train.images[2])
    assert_the_record(test.images[0])


def test_the_parent_folder_will_do(tmp_path):
    write_binary(tmp_path / "cifar-10-batches-bin")
    assert load(tmp_path, split="test").labels.tolist() == [5]


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_python_layout_of_any_pickle_protocol(tmp_path, protocol):
    write_python(tmp_path / "cifar-10-batches-py", protocol)
    train, test = load(tmp_path), load(tmp_path, split="test")
    assert train.labels.tolist() == [3, 0]
    assert train.class_names == CIFAR10_CLASSES
    assert_the_record(train.images[0])
    assert test.labels.tolist() == [5]
    assert_the_record(test.images[0])


def test_python_layout_as_python_2_wrote_it(tmp_path):
    write_python(tmp_path)
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR"
        b"(I1\n(I1\nI3072\ntcnumpy\ndtype\n(S'u1'\nI0\nI1\ntR(I3\nS'|'\nNNNI-1\nI-1\nI0\ntb"
        b"I00\nT" + (3072).to_bytes(4, "little") + RECORD + b"tb"
    )
    (tmp_path / "data_batch_1").write_bytes(
        b"\x80\x02}(U\x04data" + array + b"U\x06labels](K\x07eu."
    )
    train = load(tmp_path)
    assert train.labels.tolist() == [7]
    assert_the_record(train.images[0])


def test_class_names_can_be_replaced(tmp_path):
    write_binary(tmp_path)
    names = tuple(f"class {i}" for i in range(10))
    assert load(tmp_path, class_names=names).class_names == names
    with pytest.raises(ValueError, match="label 9 is out of range 0 to 1 of the 2 class names"):
        load(tmp_path, class_names=("a", "b"))


@pytest.mark.parametrize(
    ("write", "name", "content", "message"),
    [
        (write_binary, "data_batch_2.bin", bytes(3072), "has 3072 bytes, not a multiple"),
        (write_binary, "data_batch_2.bin", b"", "has 0 bytes"),
        (write_binary, "data_batch_2.bin", b"\x0a" + RECORD,
         "record 0 has label 10, out of range 0 to 9"),
        (write_binary_100, "train.bin", b"\x03" + RECORD,
         "has 3073 bytes, not a multiple of the record's 3074: truncated or not a CIFAR-100 file; "
         "download cifar-100-binary.tar.gz again"),
        (write_binary_100, "train.bin", b"\x00\x64" + RECORD,
         "record 0 has fine label 100, out of range 0 to 99"),
    ],
)  # fmt: skip
def test_damaged_binary_files(tmp_path, write, name, content, message):
    (write(tmp_path) / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name}: {message}"):
        load(tmp_path)


def test_missing_files_of_a_split(tmp_path):
    write_binary(tmp_path)
    (tmp_path / "test_batch.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"test_batch.bin: .*no test split; download"):
        load(tmp_path, split="test")
    (tmp_path / "data_batch_1.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"data_batch_1.bin: .*train split is not whole"):
        load(tmp_path)


class Hostile:
    """Would run a command if it were unpickled as usual."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


def test_a_hostile_pickle_is_refused_and_runs_nothing(tmp_path):
    folder = write_python(tmp_path / "data")
    content = pickle.dumps({"data": Hostile(tmp_path / "made"), "labels": [1]})
    (folder / "data_batch_1").write_bytes(content)
    with pytest.raises(ValueError, match=r"data_batch_1: the pickle is refused: .*mkdir"):
        load(folder)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a readable pickle"),
        (b"not a pickle", "not a readable pickle"),
        (pickle.dumps([1]), "not a pickled dict with 'data' and 'labels'"),
        (pickle.dumps({"data": ROW, "fine_labels": [1]}), "not a pickled dict with"),
        (pickle.dumps({"data": ROW / 1.0, "labels": [1]}), "dtype 'f8' instead of uint8"),
        (pickle.dumps({"data": ROW.astype(object), "labels": [1]}), "instead of uint8"),
        (pickle.dumps({"data": ROW[0], "labels": [1]}), r"data is \(3072,\), not uint8 of shape"),
        (pickle.dumps({"data": "text", "labels": [1]}), "data is str"),
        (pickle.dumps({"data": ROW, "labels": [1, 2]}), "2 labels for 1 image"),
        (pickle.dumps({"data": ROW, "labels": [11]}), "record 0 has label 11"),
        (pickle.dumps({"data": ROW, "labels": [1 << 80]}), "record 0 has label"),
        (pickle.dumps({"data": ROW, "labels": ["1"]}), "labels is not a list of integers"),
        (b"\x80\x02Nr\xff\xff\xff\x7f.", "it numbers an object 2147483647"),
        (pickle.dumps({"data": ROW, "labels": [1]}).replace(b"M\x00\x0c", b"M\x01\x0c"), "3073"),
    ],
)
def test_damaged_pickles(tmp_path, content, message):
    (write_python(tmp_path) / "data_batch_1").write_bytes(content)
    with pytest.raises(ValueError, match=rf"data_batch_1: .*{message}"):
        load(tmp_path)


def test_every_truncation_of_a_pickle_is_one_clear_error(tmp_path):
    path = write_python(tmp_path) / "data_batch_1"
    whole = path.read_bytes()
    for length in (*range(0, 200, 7), 3000, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="data_batch_1: "):
            load(tmp_path)


def test_flipped_bits_of_a_pickle_never_escape_as_another_error(tmp_path):
    path = write_python(tmp_path) / "data_batch_1"
    whole = path.read_bytes()
    generator = np.random.default_rng(0)
    ends = [*range(250), *range(len(whole) - 120, len(whole))]
    for position in generator.choice(ends, 150):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << int(generator.integers(8))
        path.write_bytes(damaged)
        problem = problem_of(load, tmp_path)
        assert problem is None or "data_batch_1: " in problem


WRITERS = pytest.mark.parametrize(
    ("write", "official"),
    [(write_binary_100, "cifar-100-binary"), (write_python_100, "cifar-100-python")],
)


def test_the_official_class_names():
    assert len(CIFAR100_CLASSES) == 100
    assert CIFAR100_CLASSES[:3] == ("apple", "aquarium_fish", "baby")
    assert CIFAR100_CLASSES[57:60] == ("pear", "pickup_truck", "pine_tree")
    assert CIFAR100_CLASSES[-1] == "worm"
    assert len(CIFAR100_COARSE_CLASSES) == 20
    assert CIFAR100_COARSE_CLASSES[11] == "large_omnivores_and_herbivores"
    assert CIFAR100_COARSE_OF_FINE[:10] == (4, 1, 14, 8, 0, 6, 7, 7, 18, 3)
    assert [CIFAR100_COARSE_OF_FINE.count(label) for label in range(20)] == [5] * 20


@WRITERS
def test_fine_labels_are_the_default(tmp_path, write, official):
    write(tmp_path / official)
    for folder in (tmp_path, tmp_path / official):
        train, test = load(folder), load(folder, split="test")
        assert train.name == "cifar100"
        assert train.labels.tolist() == [91, 8]
        assert train.class_names == CIFAR100_CLASSES
        assert train.images.shape == (2, 32, 32, 3)
        assert_the_record(train.images[0])
        assert test.labels.tolist() == [8]
        assert int(test.images.sum()) == 0


@WRITERS
def test_coarse_labels_are_an_option(tmp_path, write, official):
    data = load(write(tmp_path / official), labels="coarse")
    assert data.name == "cifar100-coarse"
    assert data.labels.tolist() == [1, 18]
    assert data.class_names == CIFAR100_COARSE_CLASSES
    assert_the_record(data.images[0])


def test_a_damaged_coarse_label(tmp_path):
    (write_binary_100(tmp_path) / "train.bin").write_bytes(b"\x14\x00" + RECORD)
    assert load(tmp_path).labels.tolist() == [0]
    with pytest.raises(ValueError, match="record 0 has coarse label 20, out of range 0 to 19"):
        load(tmp_path, labels="coarse")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train", {"data": ROW, "labels": [1]}, "train: not a pickled dict with 'data' and 'fine_"),
        ("train", {"data": ROW, "fine_labels": [100]}, "train: record 0 has fine label 100"),
        ("train", {"data": ROW, "fine_labels": [1, 2]}, "train: 2 fine_labels for 1 image"),
        ("train", {"data": ROW, "fine_labels": 1}, "train: fine_labels is not a list of integers"),
    ],
)
def test_pickles_with_other_entries(tmp_path, name, content, message):
    write_python_100(tmp_path).joinpath(name).write_bytes(pickle.dumps(content))
    with pytest.raises(ValueError, match=rf"{message}.*; download cifar-100-python.tar.gz again"):
        load(tmp_path)


def test_a_missing_split(tmp_path):
    (write_python_100(tmp_path) / "test").unlink()
    with pytest.raises(FileNotFoundError, match=r"test: no such file, so there is no test split"):
        load(tmp_path, split="test")


def test_coarse_labels_elsewhere_are_refused(tmp_path):
    write_binary(tmp_path / "b")
    with pytest.raises(
        ValueError, match=r"labels='coarse': .* CIFAR-10, which has only fine labels"
    ):
        load(tmp_path / "b", labels="coarse")
    (tmp_path / "x.npz").write_bytes(b"")
    with pytest.raises(ValueError, match=r"labels='coarse': .*x.npz is not CIFAR-100"):
        load(tmp_path / "x.npz", labels="coarse")
    with pytest.raises(ValueError, match="labels='rough' is unknown; choose one of fine, coarse"):
        load(tmp_path, labels="rough")


def test_a_parent_of_both_data_sets_is_ambiguous(tmp_path):
    write_python(tmp_path / "cifar-10-batches-py")
    write_binary_100(tmp_path / "cifar-100-binary")
    with pytest.raises(
        ValueError,
        match=r"holds both CIFAR-10 and CIFAR-100 \(cifar-10-batches-py, cifar-100-binary\); give",
    ):
        load(tmp_path)
    assert load(tmp_path / "cifar-100-binary").labels.tolist() == [91, 8]


def test_the_official_files(cifar10_dir):
    train, test = load(cifar10_dir), load(cifar10_dir, split="test")
    assert train.images.shape == (50000, 32, 32, 3)
    assert np.bincount(train.labels).tolist() == [5000] * 10
    assert train.labels[:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
    assert test.images.shape == (1000, 32, 32, 3)
    assert test.labels[:10].tolist() == [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]
    # The published channel means of the training set, 0.4914, 0.4822, 0.4465 of full scale.
    means = train.images.mean(axis=(0, 1, 2)) / 255
    np.testing.assert_allclose(means, [0.4914, 0.4822, 0.4465], atol=5e-5)
