"""CIFAR-100 in its two official layouts, fine and coarse, whole and damaged."""

from __future__ import annotations

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

from pmt.datasets import CIFAR100_CLASSES, CIFAR100_COARSE_CLASSES, load
from pmt.datasets.catalog import CIFAR100_COARSE_OF_FINE


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


WRITERS = pytest.mark.parametrize(
    ("write", "official"),
    [(write_binary_100, "cifar-100-binary"), (write_python_100, "cifar-100-python")],
)


def test_the_official_class_names() -> None:
    assert len(CIFAR100_CLASSES) == 100
    assert CIFAR100_CLASSES[:3] == ("apple", "aquarium_fish", "baby")
    assert CIFAR100_CLASSES[57:60] == ("pear", "pickup_truck", "pine_tree")
    assert CIFAR100_CLASSES[-1] == "worm"
    assert len(CIFAR100_COARSE_CLASSES) == 20
    assert CIFAR100_COARSE_CLASSES[11] == "large_omnivores_and_herbivores"
    assert CIFAR100_COARSE_OF_FINE[:10] == (4, 1, 14, 8, 0, 6, 7, 7, 18, 3)
    assert [CIFAR100_COARSE_OF_FINE.count(label) for label in range(20)] == [5] * 20


@WRITERS
def test_fine_labels_are_the_default(tmp_path: Path, write, official: str) -> None:
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
def test_coarse_labels_are_an_option(tmp_path: Path, write, official: str) -> None:
    data = load(write(tmp_path / official), labels="coarse")
    assert data.name == "cifar100-coarse"
    assert data.labels.tolist() == [1, 18]
    assert data.class_names == CIFAR100_COARSE_CLASSES
    assert_the_record(data.images[0])


@WRITERS
def test_names_on_disk_win_and_missing_ones_are_the_official(
    tmp_path: Path, write, official: str
) -> None:
    folder = write(tmp_path / official)
    names = [f"fine {i}" for i in range(100)]
    if official == "cifar-100-binary":
        (folder / "fine_label_names.txt").write_text("\n".join(names))
    else:
        (folder / "meta").write_bytes(pickle.dumps({"fine_label_names": names}))
    assert load(folder).class_names == tuple(names)
    for name in ("fine_label_names.txt", "meta"):
        (folder / name).unlink(missing_ok=True)
    assert load(folder).class_names == CIFAR100_CLASSES


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "train.bin",
            b"\x03" + RECORD,
            r"train.bin: has 3073 bytes, not a multiple of the record's 3074: truncated or not a "
            r"CIFAR-100 file; download cifar-100-binary.tar.gz again",
        ),
        ("train.bin", b"\x00\x64" + RECORD, "record 0 has fine label 100, out of range 0 to 99"),
        (
            "fine_label_names.txt",
            b"apple\n",
            "fine_label_names.txt: names 1 classes instead of 100",
        ),
    ],
)
def test_damaged_binary_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (write_binary_100(tmp_path) / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load(tmp_path)


def test_a_damaged_coarse_label(tmp_path: Path) -> None:
    (write_binary_100(tmp_path) / "train.bin").write_bytes(b"\x14\x00" + RECORD)
    assert load(tmp_path).labels.tolist() == [0]
    with pytest.raises(ValueError, match="record 0 has coarse label 20, out of range 0 to 19"):
        load(tmp_path, labels="coarse")


ROW = np.zeros((1, 3072), np.uint8)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train", {"data": ROW, "labels": [1]}, "train: not a pickled dict with 'data' and 'fine_"),
        ("train", {"data": ROW, "fine_labels": [100]}, "train: record 0 has fine label 100"),
        ("train", {"data": ROW, "fine_labels": [1, 2]}, "train: 2 fine_labels for 1 images"),
        ("train", {"data": ROW, "fine_labels": 1}, "train: fine_labels is not a list of integers"),
        ("meta", {"fine_label_names": []}, "meta: fine_label_names is not a list of 100 names"),
    ],
)
def test_damaged_pickles(tmp_path: Path, name: str, content: object, message: str) -> None:
    (write_python_100(tmp_path) / name).write_bytes(pickle.dumps(content))
    with pytest.raises(ValueError, match=rf"{message}.*; download cifar-100-python.tar.gz again"):
        load(tmp_path)


def test_a_missing_split(tmp_path: Path) -> None:
    (write_python_100(tmp_path) / "test").unlink()
    with pytest.raises(FileNotFoundError, match=r"test: no such file, so there is no test split"):
        load(tmp_path, split="test")


def test_coarse_labels_elsewhere_are_refused(tmp_path: Path) -> None:
    write_binary(tmp_path / "b")
    with pytest.raises(
        ValueError, match=r"labels='coarse': .* CIFAR-10, which has only fine labels"
    ):
        load(tmp_path / "b", labels="coarse")
    (tmp_path / "x.npz").write_bytes(b"")
    with pytest.raises(ValueError, match=r"labels='coarse': .*x.npz is not CIFAR-100"):
        load(tmp_path / "x.npz", labels="coarse")
    with pytest.raises(ValueError, match="labels='rough' must be 'fine' or 'coarse'"):
        load(tmp_path, labels="rough")


def test_a_parent_of_both_data_sets_is_ambiguous(tmp_path: Path) -> None:
    write_python(tmp_path / "cifar-10-batches-py")
    write_binary_100(tmp_path / "cifar-100-binary")
    with pytest.raises(
        ValueError,
        match=r"holds both CIFAR-10 and CIFAR-100 \(cifar-10-batches-py, cifar-100-binary\); give",
    ):
        load(tmp_path)
    assert load(tmp_path / "cifar-100-binary").labels.tolist() == [91, 8]
