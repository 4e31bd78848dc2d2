"""Folders laid out as CIFAR-10-C: reading published ones and damaged ones, and which is taken."""

import json

import numpy as np
import pytest
from cifar_files import write_binary, write_binary_100, write_published
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import problem_of

from pmt.datasets import (
    CIFAR10_CLASSES,
    CIFAR100_CLASSES,
    CIFAR100_COARSE_CLASSES,
    load,
    load_corrupted,
)
from pmt.datasets.corrupted_arrays import find_corrupted


@pytest.mark.parametrize("severity", [1, 3, 5])
def test_a_severity_is_a_fifth_of_the_array(tmp_path, severity):
    data = load_corrupted(write_published(tmp_path / "CIFAR-10-C"), "fog", severity)
    assert data.images.shape == (3, 32, 32, 3)
    assert data.images[:, 0, 0, 0].tolist() == [10 * severity + image for image in range(3)]
    assert data.labels.tolist() == [3, 8, 0]
    assert data.class_names == CIFAR10_CLASSES
    assert data.name == f"CIFAR-10-C-fog-{severity}"


def test_images_are_mapped_not_read(tmp_path):
    data = load_corrupted(write_published(tmp_path / "c"), "fog", 2)
    owner = data.images
    while not isinstance(owner, np.memmap):
        assert isinstance(owner, np.ndarray)
        owner = owner.base
    assert owner.shape == (15, 32, 32, 3)


def test_class_names_follow_the_data(tmp_path):
    assert (
        load_corrupted(write_published(tmp_path / "CIFAR-100-C"), "fog", 1).class_names
        == CIFAR100_CLASSES
    )
    hundred = write_published(tmp_path / "copy", (91, 8, 0))
    assert load_corrupted(hundred, "fog", 1).class_names == CIFAR100_CLASSES
    coarse = load_corrupted(hundred, "fog", 1, labels="coarse")
    assert coarse.class_names == CIFAR100_COARSE_CLASSES
    assert coarse.labels.tolist() == [1, 18, 4]
    ten = write_published(tmp_path / "CIFAR-10-C")
    with pytest.raises(ValueError, match=r"labels='coarse': .*CIFAR-10-C is not of CIFAR-100"):
        load_corrupted(ten, "fog", 1, labels="coarse")
    names = tuple("abcdefghi")
    assert load_corrupted(ten, "fog", 1, class_names=names).class_names == names


def test_which_folder_stands_for_a_split(tmp_path):
    write_binary(tmp_path / "cifar-10-batches-bin")
    assert find_corrupted(tmp_path, "test") is None
    ten = write_published(tmp_path / "CIFAR-10-C")
    assert find_corrupted(tmp_path, "test") == ten
    assert find_corrupted(tmp_path, "train") is None
    assert find_corrupted(ten, "train") == ten
    assert find_corrupted(tmp_path / "cifar-10-batches-bin", "test") is None
    hundred = write_published(tmp_path / "CIFAR-100-C")
    assert find_corrupted(tmp_path, "test") == ten
    (tmp_path / "cifar-10-batches-bin").rename(tmp_path / "away")
    with pytest.raises(ValueError, match="holds both CIFAR-10-C and CIFAR-100-C; give the folder"):
        find_corrupted(tmp_path, "test")
    write_binary_100(tmp_path / "cifar-100-binary")
    assert find_corrupted(tmp_path, "test") == hundred
    own = write_published(tmp_path / "test")
    assert find_corrupted(tmp_path, "test") == own


def test_arrays_of_another_data_set_do_not_stand_for_it(tmp_path):
    write_binary(tmp_path / "cifar-10-batches-bin")
    write_published(tmp_path / "CIFAR-100-C")
    assert find_corrupted(tmp_path, "test") is None


def test_clean_reading_of_corrupted_arrays_says_how(tmp_path):
    folder = write_published(tmp_path / "CIFAR-10-C")
    with pytest.raises(ValueError, match=r"holds only corrupted images .*; choose some with -"):
        load(folder, split="test")
    with pytest.raises(FileNotFoundError, match=r"no corrupted arrays of the train split"):
        load_corrupted(tmp_path, "fog", 1, split="train")
    with pytest.raises(
        FileNotFoundError,
        match=r"snow.npy: no such file \(the folder has fog, jpeg_compression\); add it",
    ):
        load_corrupted(folder, "snow", 1)
    with pytest.raises(ValueError, match=r"severity=6 must be 1\.\.5"):
        load_corrupted(folder, "fog", 6)
    with pytest.raises(ValueError, match="split='valid' is unknown; choose one of train, test"):
        load_corrupted(folder, "fog", 1, split="valid")


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("fog", np.zeros((15, 32, 32, 3)), r"fog.npy: is float64 of shape \(15, 32, 32, 3\), not"),
        ("fog", np.zeros((14, 32, 32, 3), np.uint8), r"not uint8 of shape \(5 N, H, W, C\)"),
        ("fog", np.zeros(15, np.uint8), r"not uint8 of shape"),
        ("fog", np.zeros((15, 0, 32, 3), np.uint8), "fog.npy: .*"),
        (
            "fog",
            np.zeros((15, 3, 32, 32), np.uint8),
            r"fog.npy: has shape \(15, 3, 32, 32\), channels first; put the channels last: "
            r"images\.transpose\(0, 2, 3, 1\)$",
        ),
        ("fog", np.array([{}]), "fog.npy: truncated or not a whole .npy array"),
        ("labels", np.zeros(14, np.uint8), r"labels.npy: is uint8 of shape \(14,\), not integers"),
        ("labels", np.zeros(15), "labels.npy: is float64"),
        ("labels", np.arange(15), "does not hold the same labels five times"),
        ("labels", np.full(15, -1), "label -1 is below 0"),
    ],
)
def test_wrong_arrays(tmp_path, name, array, message):
    folder = write_published(tmp_path / "c")
    np.save(folder / f"{name}.npy", array)
    with pytest.raises(ValueError, match=message):
        load_corrupted(folder, "fog", 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-1], "fog.npy: truncated or not a whole .npy array"),
        (lambda data: data[:9], "fog.npy: truncated or not a whole .npy array"),
        (lambda data: data + b"x", "has 46209 bytes where its header says 46208; download"),
        (lambda data: b"", "fog.npy: not a .npy file; download the archive again"),
        (lambda data: b"PK\x03\x04" + data, "fog.npy: not a .npy file"),
    ],
)
def test_damaged_files(tmp_path, change, message):
    folder = write_published(tmp_path / "c")
    path = folder / "fog.npy"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match=message):
        load_corrupted(folder, "fog", 1)


@given(position=st.integers(0, 127), value=st.integers(0, 255))
@settings(max_examples=150, deadline=None)
def test_any_damage_of_the_header_is_one_clear_error(tmp_path_factory, position, value):
    folder = tmp_path_factory.getbasetemp() / "damage"
    if not folder.exists():
        write_published(folder)
    path = folder / "fog.npy"
    whole = path.read_bytes()
    changed = bytearray(whole)
    changed[position] = value
    path.unlink()
    path.write_bytes(changed)
    problem = problem_of(load_corrupted, folder, "fog", 1)
    path.unlink()
    path.write_bytes(whole)
    assert problem is None or problem.startswith(f"{path}: ")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[" * 100000,
        json.dumps({"data": "x"}),
        json.dumps(
            {
                "data": "x", "split": "test", "seed": 0, "constants": "cifar10",
                "images": 3, "shape": [32, 32, 3], "data_crc32": 0, "class_names": ["a", "a"],
            }
        ),
    ],
)  # fmt: skip
def test_damaged_manifests(tmp_path, text):
    folder = write_published(tmp_path / "c")
    (folder / "manifest.json").write_text(text)
    with pytest.raises(ValueError, match=r"manifest.json: (not a|is not) .*; delete the folder"):
        load_corrupted(folder, "fog", 1)
