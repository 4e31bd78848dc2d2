"""The Dataset itself: what it accepts, what it refuses, and its parts."""

import re
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmt.datasets import Dataset
from pmt.datasets.dataset import checksum, checksums


def made(count: int = 10, classes: int = 2) -> Dataset:
    """Image i is filled with the value i and has the label i modulo the number of classes."""
    numbers = np.arange(count)
    images = np.broadcast_to(numbers[:, None, None, None].astype(np.uint8), (count, 2, 3, 1))
    names = tuple("abcdefghij"[:classes])
    return Dataset(images=images.copy(), labels=numbers % classes, class_names=names, name="made")


def contents(dataset: Dataset) -> list[int]:
    return [int(value) for value in dataset.images[:, 0, 0, 0]]


def test_it_keeps_what_it_was_given_with_int64_labels():
    dataset = Dataset(
        images=np.zeros((2, 4, 5, 3), np.uint8),
        labels=np.array([1, 0], np.uint8),
        class_names=["cat", "dog"],  # type: ignore[arg-type]
        name="pets",
    )
    assert len(dataset) == 2
    assert dataset.labels.dtype == np.int64
    assert dataset.labels.tolist() == [1, 0]
    assert dataset.class_names == ("cat", "dog")
    assert repr(dataset) == "Dataset('pets', 2 images 4x5x3, 2 classes)"


def test_arrays_are_immutable_and_free_of_the_callers():
    images, labels = np.zeros((2, 1, 1, 1), np.uint8), np.zeros(2, np.int64)
    dataset = Dataset(images=images, labels=labels, class_names=("a",), name="x")
    images[0], labels[0] = 9, 5
    assert dataset.images.max() == 0
    assert dataset.labels.tolist() == [0, 0]
    with pytest.raises(ValueError, match="read-only"):
        dataset.images[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        dataset.take(1).labels[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        dataset.subset([0]).images[0] = 1


IMAGES = np.zeros((2, 4, 4, 3), np.uint8)
LABELS = np.array([0, 1])


@pytest.mark.parametrize(
    ("images", "labels", "names", "error", "message"),
    [
        (IMAGES / 1.0, LABELS, "ab", TypeError, "images is float64: must be a uint8 array"),
        ([[1]], LABELS, "ab", TypeError, "images is list: must be a uint8 array"),
        (
            IMAGES[0],
            LABELS,
            "ab",
            ValueError,
            r"images has shape \(4, 4, 3\): must be \(N, H, W, C",
        ),
        (IMAGES[:0], LABELS[:0], "ab", ValueError, r"shape \(0, 4, 4, 3\).*at least one image"),
        (IMAGES, LABELS / 1.0, "ab", TypeError, "labels is float64: must be an integer array"),
        (IMAGES, LABELS[:1], "ab", ValueError, r"labels has shape \(1,\): must be \(2,\)"),
        (IMAGES, LABELS + 1, "ab", ValueError, "labels holds 2: must be 0 to 1 with 2 class names"),
        (IMAGES, LABELS - 1, "ab", ValueError, "labels holds -1: must be 0 to 1"),
        (IMAGES, LABELS, (), ValueError, "class_names is empty"),
        (IMAGES, LABELS, ("a", "a"), ValueError, "class_names holds 'a' twice"),
        (IMAGES, LABELS, ("a", 1), TypeError, "class_names holds 1: every name must be text"),
    ],
)
def test_wrong_contents_are_refused(images, labels, names, error, message):
    with pytest.raises(error, match=message):
        Dataset(images=images, labels=labels, class_names=tuple(names), name="x")  # type: ignore


def test_one_text_is_no_sequence_of_names():
    with pytest.raises(TypeError, match="class_names='ab' must be a sequence of names"):
        Dataset(images=IMAGES, labels=LABELS, class_names="ab", name="x")  # type: ignore[arg-type]


def test_subset_follows_the_indices_in_their_order():
    part = made().subset([7, 0, 7])
    assert contents(part) == [7, 0, 7]
    assert part.labels.tolist() == [1, 0, 1]
    assert part.class_names == ("a", "b")


@pytest.mark.parametrize(
    ("indices", "error", "message"),
    [
        ([], ValueError, "indices is empty"),
        ([0, 10], ValueError, "indices holds 10: must be 0 to 9"),
        ([-1], ValueError, "indices holds -1: must be 0 to 9"),
        ([[1]], ValueError, r"indices has shape \(1, 1\)"),
        ([True, False], TypeError, r"indices is bool.*numpy.flatnonzero"),
        ([0.5], TypeError, "indices is float64"),
    ],
)
def test_wrong_indices_are_refused(indices, error, message):
    with pytest.raises(error, match=message):
        made().subset(indices)  # type: ignore[arg-type]


def test_take_gives_the_first_images_and_checks_the_number():
    assert contents(made().take(3)) == [0, 1, 2]
    for wrong in (0, 11, -1):
        with pytest.raises(ValueError, match=rf"n={wrong} must be 1\.\.10"):
            made().take(wrong)
    with pytest.raises(TypeError, match=r"n=1.5 must be an integer"):
        made().take(1.5)  # type: ignore[arg-type]


def test_shuffled_depends_on_the_seed_alone():
    assert contents(made().shuffled(1)) == contents(made().shuffled(1))
    assert contents(made().shuffled(1)) != contents(made().shuffled(2))
    assert sorted(contents(made().shuffled(1))) == list(range(10))
    with pytest.raises(ValueError, match="seed=-1 must be 0 or more"):
        made().shuffled(-1)


@given(count=st.integers(2, 60), fraction=st.floats(0.01, 0.99), seed=st.integers(0, 2**40))
def test_split_parts_the_images_without_loss(count, fraction, seed):
    dataset = made(count)
    if round(fraction * count) in (0, count):
        with pytest.raises(ValueError, match="leaves one part"):
            dataset.split(fraction, seed)
        return
    first, second = dataset.split(fraction, seed)
    assert len(first) == round(fraction * count)
    assert sorted(contents(first) + contents(second)) == list(range(count))
    assert first.labels.tolist() == [value % 2 for value in contents(first)]


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.5, float("nan")])
def test_split_refuses_a_fraction_out_of_range(fraction):
    with pytest.raises(ValueError, match="must be above 0 and below 1"):
        made().split(fraction, 0)


def test_bundled_images_are_fashion_mnist_or_a_clear_error(monkeypatch, tmp_path):
    from pmt.datasets import FASHION_MNIST_CLASSES, downloading, save_npz

    monkeypatch.setattr(downloading.resources, "files", lambda package: tmp_path)
    with pytest.raises(FileNotFoundError, match="bundled images are not installed"):
        downloading.bundled("test")
    (tmp_path / "data").mkdir()
    save_npz(made(10, classes=10), tmp_path / "data" / "fashion_mnist_test.npz")
    assert downloading.bundled("test").class_names == FASHION_MNIST_CLASSES
    with pytest.raises(ValueError, match="split='valid' is unknown; choose one of train, test"):
        downloading.bundled("valid")


@given(st.integers(1, 300), st.integers(1, 9), st.integers(0, 99))
def test_the_checksum_is_of_the_labels_and_the_images_behind_them(count, side, seed):
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (count, side, 3, 1)).astype(np.uint8)
    labels = rng.integers(0, 2, count)
    data = Dataset(images, labels, ("a", "b"), "drawn")
    written = labels.astype("<i8").tobytes()
    assert checksum(data) == zlib.crc32(written + images.tobytes())
    assert checksums(data) == (zlib.crc32(images.tobytes()), zlib.crc32(written))


def test_checksums_are_kept(monkeypatch):
    read = []

    def crc32(content, *start):
        read.append(memoryview(content).nbytes)
        return zlib_crc32(content, *start)

    zlib_crc32 = zlib.crc32
    monkeypatch.setattr(zlib, "crc32", crc32)
    data = Dataset(np.zeros((5, 4, 3, 1), np.uint8), np.zeros(5, np.int64), ("a",), "zeros")
    assert checksums(data) == checksums(data)
    assert checksum(data) == checksum(data)
    assert sorted(read) == [5 * 8, 5 * 4 * 3, 5 * 4 * 3]


def test_images_without_labels_are_sliced_as_others_are():
    bare = Dataset.unlabeled(IMAGES, "camera")
    assert (bare.is_labeled, bare.has_class_labels, bare.has_targets) == (False, False, False)
    assert set(bare.labels.tolist()) == {-1}
    assert bare.class_names == ()
    assert not bare.take(1).is_labeled
    assert not bare.shuffled(3).is_labeled
    with pytest.raises(TypeError, match=r"^images is float64: must be a uint8 array"):
        Dataset.unlabeled(IMAGES / 1.0)


def test_float_targets_are_kept_as_they_are():
    targets = np.linspace(0, 1, 2 * len(IMAGES), dtype=np.float32).reshape(-1, 2)
    data = Dataset(IMAGES, targets, ("wet", "warm"), "weather")
    assert (data.is_labeled, data.has_class_labels, data.has_targets) == (True, False, True)
    np.testing.assert_array_equal(data.subset([1]).labels, targets[[1]])
    assert checksum(data) != checksum(Dataset(IMAGES, 1 - targets, ("wet", "warm"), "weather"))
    with pytest.raises(ValueError, match=r"^float targets have shape \(\d+, 2\): must be"):
        Dataset(IMAGES, targets, ("wet",), "weather")


def test_targets_are_float_rows_whatever_their_shape():
    images = np.zeros((3, 4, 4), np.uint8)
    data = Dataset.with_targets(images, np.arange(24).reshape(3, 2, 2, 2))
    assert repr(data) == "Dataset('targets', 3 images 4x4x1, 8 targets)"
    assert data.labels.dtype == np.float32
    assert data.labels.tolist() == np.arange(24).reshape(3, 8).tolist()
    assert Dataset.with_targets(images, [0.5, 1.0, 2.0], name="one").labels.shape == (3, 1)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (["a", "b"], TypeError, "y is <U1: targets must be real numbers; use .astype(float)"),
        (
            np.zeros((2, 0)),
            ValueError,
            "y has shape (2, 0): targets must be (N,) or (N, ...), and nothing empty",
        ),
        (
            [[1.0], [2.0], [3.0]],
            ValueError,
            "float targets have shape (3, 1): must be (2, 1), one for each image and class name",
        ),
        (
            [1.0, np.nan],
            ValueError,
            "float targets hold a value that is not finite: each must be a number",
        ),
    ],
)
def test_what_is_no_target_is_refused(y, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        Dataset.with_targets(np.zeros((2, 4, 4), np.uint8), y)
