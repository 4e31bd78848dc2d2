"""Data sets of a caller's own arrays: rules, parts, iteration and joining."""

import re
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pmt
from pmt.datasets import Dataset, concatenate, save_npz

GRAY = np.arange(6 * 4 * 4, dtype=np.uint8).reshape(6, 4, 4)
LABELS = [0, 1, 2, 0, 1, 2]


def made() -> Dataset:
    return Dataset.from_arrays(GRAY, LABELS)


@pytest.mark.parametrize(
    ("x", "shown"),
    [
        (GRAY, "6 images 4x4x1"),
        (np.zeros((6, 8, 9, 3), np.uint8), "6 images 8x9x3"),
        (np.zeros((6, 49, 10, 1), np.int8), "6 int8 inputs 49x10x1"),
        (np.zeros((6, 128, 6), np.float64), "6 float32 inputs 1x128x6"),
        (np.zeros((6, 20), np.float32), "6 float32 inputs 1x1x20"),
        (np.zeros((6, 20), np.float16), "6 float32 inputs 1x1x20"),
        (np.zeros((6, 1, 128, 6), np.float32), "6 float32 inputs 1x128x6"),
    ],
)
def test_arrays_become_a_data_set(x, shown):
    data = Dataset.from_arrays(x, LABELS, name="mine")
    assert repr(data) == f"Dataset('mine', {shown}, 3 classes)"
    assert data.labels.tolist() == LABELS
    assert data.class_names == ("0", "1", "2")
    assert data.has_pixels == (x.dtype == np.uint8)


FIRST = "images must be (N, H, W, C), channels last; use x.transpose(0, 2, 3, 1)"


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (np.zeros((6, 3, 32, 32), np.uint8), ValueError, f"x has shape (6, 3, 32, 32): {FIRST}"),
        (np.zeros((6, 1, 28, 28), np.uint8), ValueError, f"x has shape (6, 1, 28, 28): {FIRST}"),
        (np.zeros((6, 3, 32, 32)), ValueError, f"x has shape (6, 3, 32, 32): {FIRST}"),
        (
            np.zeros((6, 4), np.uint8),
            ValueError,
            "x has shape (6, 4): images must be (N, H, W, C), or (N, H, W) where they are gray, "
            "and nothing empty; of flat rows give x.reshape(-1, H, W, C)",
        ),
        (
            np.zeros((6, 0, 3), np.float32),
            ValueError,
            "x has shape (6, 0, 3): float32 inputs must be (N, H, W, C), (N, T, C) for windows of "
            "T steps, or (N, F), and nothing empty",
        ),
        (
            GRAY.astype(np.int64),
            TypeError,
            "x is int64: must be uint8 (pixels 0..255), int8 (a network's own inputs) or float "
            "(inputs before quantization); convert it with .astype",
        ),
        (
            np.full((6, 4), np.nan),
            ValueError,
            "images holds a value that is not finite: remove or replace it, for instance with "
            "numpy.nan_to_num(images)",
        ),
    ],
)
def test_arrays_that_break_a_rule_are_refused(x, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        Dataset.from_arrays(x, LABELS)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (
            np.eye(6, 3),
            ValueError,
            "y has shape (6, 3): must be (N,), the number of each image's class; "
            "use y.argmax(axis=1) for one-hot labels",
        ),
        (
            list("abcabc"),
            TypeError,
            "y is <U1: must be integers, the number of each image's class; number names with "
            "class_names, y = numpy.unique(names, return_inverse=True)",
        ),
        ([0, 1], ValueError, "labels has shape (2,): must be (6,), one label an image"),
        ([-1, 0, 0, 0, 0, 0], ValueError, "y: label -1 is below 0; number the classes from 0"),
        (
            [2**40, 0, 0, 0, 0, 0],
            ValueError,
            "y: label 1099511627776 is above 65535, the largest of any model; number the classes "
            "from 0, without gaps",
        ),
    ],
)
def test_labels_that_break_a_rule_are_refused(y, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$") as caught:
        Dataset.from_arrays(GRAY, y)  # type: ignore[arg-type]
    assert caught.type is error  # no FileError


def test_labels_of_a_data_set_that_are_of_another_kind_have_a_remedy():
    for labels, error, remedy in (
        (np.zeros(6), TypeError, "; Dataset.from_arrays and Dataset.with_targets convert some$"),
        (np.zeros((6, 1), int), ValueError, r"one label an image; use labels.ravel\(\)$"),
    ):
        with pytest.raises(error, match=remedy):
            Dataset(GRAY[..., None], labels, ("a", "b"), "x")
    assert Dataset.from_arrays(GRAY, np.zeros((6, 1), int)).labels.shape == (6,)


def test_numbers_that_float32_cannot_hold_are_refused():
    for argument, make in (
        ("x", lambda: Dataset.from_arrays([[1.0, -1e300]], [0])),
        ("y", lambda: Dataset.with_targets([[1.0]], [-1e300])),
    ):
        message = (
            f"{argument} holds -1e+300: must lie in -3.4e38 to 3.4e38, as float32 does; scale the "
            "numbers, or correct this one"
        )
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            make()


def test_class_names_must_be_names_of_all_classes():
    named = Dataset.from_arrays(GRAY, LABELS, class_names=["a", "b", "c"])
    assert named.class_names == ("a", "b", "c")
    with pytest.raises(ValueError, match=r"y: label 2 is out of range 0 to 1 of the 2 class names"):
        Dataset.from_arrays(GRAY, LABELS, class_names=["a", "b"])
    with pytest.raises(TypeError, match="class_names='abc' must be a sequence of names"):
        Dataset.from_arrays(GRAY, LABELS, class_names="abc")


def test_labels_of_one_column_are_taken_as_keras_has_them():
    assert Dataset.from_arrays(GRAY, np.array(LABELS)[:, None]).labels.tolist() == LABELS


@given(first=st.integers(-8, 8), last=st.integers(-8, 8), step=st.sampled_from([-2, -1, 1, 2, 3]))
def test_a_slice_is_that_of_the_arrays(first, last, step):
    data, part = made(), slice(first, last, step)
    if len(GRAY[part]) == 0:
        with pytest.raises(ValueError, match=r"of 6 images is empty: a data set holds at least"):
            data[part]
        return
    assert data[part].labels.tolist() == LABELS[part]
    np.testing.assert_array_equal(data[part].images[..., 0], GRAY[part])


def test_a_slice_copies_nothing():
    data = made()
    assert np.shares_memory(data[2:4].images, data.images)


def test_an_index_gives_an_image_and_its_label():
    image, label = made()[4]
    assert label == 1
    np.testing.assert_array_equal(image[..., 0], GRAY[4])
    assert made()[-1][1] == 2
    with pytest.raises(IndexError, match=r"^index=6 must be -6 to 5 with 6 images$"):
        made()[6]


def test_indices_choose_as_subset_does():
    assert made()[[5, 0]].labels.tolist() == [2, 0]
    assert made()[np.array([1, 1])].labels.tolist() == [1, 1]


def test_a_mask_takes_the_images_where_it_is_true():
    data = made()
    assert data[data.labels == 1].labels.tolist() == [1, 1]
    with pytest.raises(ValueError, match=r"^mask has shape \(2,\): must be \(6,\), one Boolean an"):
        data[[True, False]]
    with pytest.raises(ValueError, match=r"^indices is empty: a data set holds"):
        data[data.labels == 9]


def test_iteration_gives_each_image_with_its_label_once():
    pairs = list(made())
    assert [label for _, label in pairs] == LABELS
    np.testing.assert_array_equal(np.stack([image for image, _ in pairs])[..., 0], GRAY)


def test_resize_stretches_images():
    data = Dataset.from_arrays(np.full((2, 4, 6, 3), 77, np.uint8), [0, 1])
    assert repr(data.resize(8, 3)) == "Dataset('arrays', 2 images 8x3x3, 2 classes)"
    assert set(data.resize(8, 3).images.ravel().tolist()) == {77}
    assert data.resize(4, 6).images is data.images


@pytest.mark.parametrize(
    ("x", "size", "error", "message"),
    [
        (
            np.zeros((2, 8, 3)),
            (4, 4),
            TypeError,
            "data set 'arrays' holds float32 inputs: only images of uint8 pixels are resized; "
            "resample the arrays before",
        ),
        (
            np.zeros((2, 8, 8, 6), np.uint8),
            (4, 4),
            ValueError,
            "data set 'arrays' has 6 channels: images of at most 4 are resized; "
            "resample the arrays before",
        ),
        (
            np.zeros((2, 8, 8), np.uint8),
            (0, 4),
            ValueError,
            "size=0 must be 1..65535",
        ),
    ],
)
def test_resize_refuses_what_is_no_image(x, size, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        Dataset.from_arrays(x, [0, 1]).resize(*size)


def test_joined_data_sets_follow_one_another():
    joined = made() + made()[:2] + made()[[5]]
    assert joined.labels.tolist() == [*LABELS, 0, 1, 2]
    assert joined.name == "arrays"
    np.testing.assert_array_equal(joined.images[6:, ..., 0], GRAY[[0, 1, 5]])
    assert concatenate([made()]).labels.tolist() == LABELS


def test_names_that_go_on_are_taken_from_the_longest():
    few = Dataset.from_arrays(GRAY[:2], [0, 1])
    assert (few + made()).class_names == ("0", "1", "2")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            Dataset.from_arrays(np.zeros((1, 5, 4), np.uint8), [0], name="tall"),
            "'arrays' holds uint8 4x4x1, 'tall' uint8 5x4x1: joined data sets hold one shape and "
            "dtype; data.resize(height, width) changes the size of images",
        ),
        (
            Dataset.from_arrays(GRAY[:1], [0], class_names=["cat"], name="cats"),
            "class 0 is 'cat' in 'cats' and '0' elsewhere: joined data sets name the classes "
            "alike; load them with one class_names=[...]",
        ),
    ],
)
def test_data_sets_that_differ_are_not_joined(other, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        made() + other


def test_joining_needs_data_sets():
    with pytest.raises(ValueError, match=r"^parts is empty: give at least one data set$"):
        concatenate([])
    with pytest.raises(TypeError, match=r"Dataset.* does not support ufuncs"):
        made() + GRAY  # type: ignore[operator]


def test_a_pair_of_arrays_stands_for_a_data_set():
    data = made()
    assert Dataset.of(data) is data
    pair = Dataset.of((GRAY, LABELS), "valid")
    assert repr(pair) == "Dataset('valid', 6 images 4x4x1, 3 classes)"
    message = (
        "valid is list: must be a pmt.datasets.Dataset or a tuple (x, y) of two arrays; "
        "pmt.datasets.from_torch, from_hugging_face and from_stream read other kinds"
    )
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        Dataset.of([GRAY, LABELS], "valid")  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:.* in valid are also in data")
def test_pairs_of_arrays_are_evaluated_corrupted_and_trained_on():
    model, data = pmt.load("fashion_mnist_dscnn"), pmt.datasets.bundled("test").take(60)
    pair = (data.images[..., 0], data.labels)
    assert model.evaluate(pair) == model.evaluate(data)
    assert model.score_images(pair).correct.mean() == model.evaluate(data).accuracy
    assert model.predict(pair)[:3].tolist() == [9, 2, 1]
    np.testing.assert_array_equal(model.predict_proba(pair), model.predict_proba(data.images))
    noisy = pmt.corruptions.corrupt(pair, "gaussian_noise", 3)
    expected = pmt.corruptions.corrupt(data, "gaussian_noise", 3)
    np.testing.assert_array_equal(noisy.images, expected.images)
    trainer = pmt.ZOTrainer(layers="head", batch=20, epochs=1)
    models = [model.copy(), model.copy()]
    trainer.fit(models[0], pair, valid=pair, progress=False)
    trainer.fit(models[1], data, valid=data, progress=False)
    assert models[0].image() == models[1].image()


def test_images_without_labels_are_indexed_iterated_over_and_joined():
    bare = Dataset.unlabeled(made().images, "camera")
    image, label = bare[-1]
    assert (image.shape, label) == ((4, 4, 1), -1)
    assert [label for _, label in bare] == [-1] * 6
    assert repr(bare[2:4] + bare) == "Dataset('camera', 8 images 4x4x1, no labels)"
    windows = Dataset.unlabeled(np.zeros((3, 1, 128, 6), np.float32), "motion")
    assert repr(windows) == "Dataset('motion', 3 float32 inputs 1x128x6, no labels)"


def test_float_targets_are_indexed_iterated_over_and_joined():
    targets = np.arange(12, dtype=np.float32).reshape(6, 2)
    data = Dataset(made().images, targets, ("wet", "warm"), "weather")
    np.testing.assert_array_equal(data[1][1], [2.0, 3.0])
    np.testing.assert_array_equal([row for _, row in data], targets)
    np.testing.assert_array_equal((data[:1] + data).labels, targets[[0, 0, 1, 2, 3, 4, 5]])


def test_only_labels_of_one_kind_are_joined():
    bare = Dataset.unlabeled(made().images, "camera")
    expected = (
        "'arrays' has class labels, 'camera' no labels: joined data sets have one kind of labels; "
        "Dataset.unlabeled(data.images) drops those of one"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        made() + bare
    wide, narrow = (
        Dataset(made().images, np.zeros((6, n), np.float32), ("a", "b", "c")[:n], f"of {n}")
        for n in (3, 2)
    )
    with pytest.raises(ValueError, match=r"^'of 3' has 3 targets per image, 'of 2' 2 targets per"):
        wide + narrow


def test_targets_of_a_file_are_those_that_were_saved(tmp_path):
    targets = np.arange(12, dtype=np.float32).reshape(6, 2)
    save_npz(Dataset.with_targets(made().images, targets, name="heat"), tmp_path / "heat.npz")
    found = pmt.datasets.load(tmp_path / "heat.npz")
    np.testing.assert_array_equal(found.labels, targets)
    np.testing.assert_array_equal(found.images, made().images)
    assert (found.name, found.has_targets) == ("heat", True)
    np.savez(tmp_path / "one.npz", images=made().images, targets=[1.5, 0, 0, 0, 0, -2])
    assert pmt.datasets.load(tmp_path / "one.npz").labels[:, 0].tolist() == [1.5, 0, 0, 0, 0, -2]


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({"labels": np.zeros(6, int), "targets": np.zeros(6)}, "both 'labels' and 'targets'; keep"),
        ({"targets": np.full(6, np.nan)}, "x.npz: float targets hold a value that is not"),
        ({"targets": np.full(6, 1j)}, "y is complex128: targets must be real numbers"),
        ({"targets": np.zeros((5, 2))}, "x.npz: float targets have shape (5, 2): must be (6, 2)"),
        ({"labels": np.zeros(6)}, "labels is float64, not integer; store class numbers, or float "
         "targets under the name 'targets'"),
    ],
)  # fmt: skip
def test_what_no_targets_of_a_file_are(tmp_path, arrays, problem):
    np.savez(tmp_path / "x.npz", images=made().images, **arrays)
    with pytest.raises(ValueError, match=re.escape(problem)):
        pmt.datasets.load(tmp_path / "x.npz")


def test_what_has_no_labels_is_not_saved(tmp_path):
    expected = (
        "data set 'camera' has no labels, which such a file holds; save its arrays with numpy.savez"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        save_npz(Dataset.unlabeled(made().images, "camera"), tmp_path / "camera.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_array_that_is_twice_in_a_file(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, images=made().images, labels=made().labels)
    with zipfile.ZipFile(path, "a") as archive, archive.open("labels.npy", "w") as file:
        np.lib.format.write_array(file, made().labels + 1)
    with pytest.raises(ValueError, match=r"x.npz: two arrays 'labels'; keep one of them$"):
        pmt.datasets.load(path)
