"""Data sets of torch, of Hugging Face datasets and of generators become a Dataset."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pmt.datasets import Dataset, adapters, bundled, from_hugging_face, from_stream, from_torch

SOME = bundled("train").take(60)


def batches(size: int = 25) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for first in range(0, len(SOME), size):
        yield SOME.images[first : first + size], SOME.labels[first : first + size]


def assert_same(data: Dataset, expected: Dataset = SOME) -> None:
    np.testing.assert_array_equal(data.images, expected.images)
    np.testing.assert_array_equal(data.labels, expected.labels)


def test_float_pixels_of_0_to_1_become_uint8():
    assert_same(from_stream((x / np.float32(255), y) for x, y in batches()))
    assert_same(from_stream((x[..., 0] / 255, y) for x, y in batches()))


def test_a_limit_ends_an_endless_generator():
    taken: list[int] = []

    def endless() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for number in itertools.count():
            taken.append(number)
            yield SOME.images[:25], SOME.labels[:25]

    data = from_stream(endless(), limit=30)
    assert_same(data, SOME[:25] + SOME[:5])
    assert taken == [0, 1]


def test_features_stay_float_and_channels_become_last():
    x = np.arange(2 * 5 * 3, dtype=np.float64).reshape(2, 5, 3)
    data = from_stream([(x, [0, 1])], features=True)
    assert repr(data) == "Dataset('stream', 2 float32 inputs 1x5x3, 2 classes)"
    turned = from_stream([(x.transpose(0, 2, 1), [0, 1])], features=True, channels_first=True)
    np.testing.assert_array_equal(turned.images, data.images)


def test_a_limit_is_a_number_of_images():
    with pytest.raises(ValueError, match=r"^limit=-1 must be 0 or more$"):
        from_stream(batches(), limit=-1)


def test_more_than_the_free_memory_is_refused(monkeypatch):
    monkeypatch.setattr(adapters, "free_memory", lambda: 30_000)
    message = (
        "stream: 50 inputs take 0.0 GB, and joining them as much again, but 0.0 GB of memory are "
        "free; take fewer with limit=N or smaller ones, or write them to a file "
        "and give numpy.load(file, mmap_mode='r') to Dataset.from_arrays"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        from_stream(batches())


class Features(dict[str, Any]):
    """The columns of a Hugging Face data set and their types."""


class Image:
    """The type of a column of pictures."""


class ClassLabel:
    """The type of a column of classes."""

    def __init__(self, names: list[str]) -> None:
        self.names = names


class Rows:
    """As much of ``datasets.Dataset`` as is read: rows, columns with types, and a choice."""

    def __init__(self, rows: list[dict[str, Any]], **features: Any) -> None:
        self.rows = rows
        self.features = Features(features)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def select(self, indices: list[int]) -> Rows:
        return Rows([self.rows[index] for index in indices], **self.features)


def pictures(*modes: str) -> Rows:
    pillow = pytest.importorskip("PIL.Image")
    rows = [
        {"img": pillow.new(mode, (9, 8), index), "kind": index % 2}
        for index, mode in enumerate(modes)
    ]
    return Rows(rows, img=Image(), kind=ClassLabel(["cat", "dog"]))


def test_columns_are_found_by_their_types():
    data = from_hugging_face(pictures(*6 * ["RGB"]))
    assert repr(data) == "Dataset('hugging-face', 6 images 8x9x3, 2 classes)"
    assert data.class_names == ("cat", "dog")
    assert data.labels.tolist() == [0, 1] * 3
    assert data.images[:, 0, 0, 0].tolist() == [0, 1, 2, 3, 4, 5]


def test_gray_pictures_stay_gray_unless_one_is_colored():
    assert from_hugging_face(pictures("L", "L")).images.shape == (2, 8, 9, 1)
    mixed = from_hugging_face(pictures("L", "L", "RGB"))
    assert mixed.images.shape == (3, 8, 9, 3)
    assert mixed.images[1].tolist() == np.full((8, 9, 3), 1).tolist()


def test_pictures_are_resized_and_chosen():
    data = from_hugging_face(pictures(*9 * ["L"]), limit=4, size=(5, 6))
    assert data.images.shape == (4, 5, 6, 1)
    assert len(set(data.images[:, 0, 0, 0].tolist())) == 4


def test_columns_of_numbers_are_features():
    rows = Rows([{"window": [[0.5, 1.0]] * 7, "label": i} for i in range(3)], window=0, label=0)
    data = from_hugging_face(rows, image="window", features=True)
    assert repr(data) == "Dataset('hugging-face', 3 float32 inputs 1x7x2, 3 classes)"
    message = "image = None: finds no column of type Image; choose one of window, label"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        from_hugging_face(rows)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            {"train": 1, "test": 2},
            TypeError,
            "data is a dict of splits (train, test): give one, data['train']",
        ),
        (
            Rows([{"image": np.zeros((4, 4, 3), np.uint8), "label": "cat"}], image=0, label=0),
            TypeError,
            "y is <U3: must be integers, the number of each image's class; number names with "
            "class_names, y = numpy.unique(names, return_inverse=True)",
        ),
    ],
)
def test_rows_that_break_a_rule_are_refused(given, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        from_hugging_face(given)


def test_an_unknown_column_is_refused():
    message = r"^label = 'y': is not a column; choose one of img, kind$"
    with pytest.raises(ValueError, match=message):
        from_hugging_face(pictures("L"), label="y")


class ListOfPairs:
    """As much of ``torch.utils.data.Dataset`` as is read: a length, items and class names."""

    def __init__(self, items: list[tuple[Any, Any]], classes: list[str]) -> None:
        self.items = items
        self.classes = classes

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self.items[index]


def test_arrays_of_a_torch_data_set_are_height_width_channels():
    items = ListOfPairs([(image, label) for image, label in SOME], list(SOME.class_names))
    data = from_torch(items)
    assert_same(data)
    assert data.class_names == SOME.class_names
    some = from_torch(items, limit=20)
    assert len(some) == 20
    assert len(set(some.labels.tolist())) > 5
    renamed = from_torch(items, class_names=list("abcdefghij"))
    assert renamed.class_names == tuple("abcdefghij")


def test_names_that_do_not_fit_the_labels_are_left_out():
    items = ListOfPairs([(image, label) for image, label in SOME], ["two", "names"])
    assert from_torch(items).class_names == tuple(map(str, range(10)))


def test_features_are_not_resized():
    message = r"^size=\(8, 8\): images are resized, features are not; leave one of both out$"
    with pytest.raises(ValueError, match=message):
        from_torch(ListOfPairs([], []), features=True, size=8)


def tensors(divisor: int = 1) -> Any:
    torch = pytest.importorskip("torch")
    images = torch.tensor(SOME.images).permute(0, 3, 1, 2)
    return torch.utils.data.TensorDataset(
        images / divisor if divisor > 1 else images, torch.tensor(SOME.labels)
    )


@pytest.mark.parametrize("divisor", [1, 255])
def test_tensors_of_torch_are_channels_height_width(divisor):
    torch = pytest.importorskip("torch")
    data = tensors(divisor)
    assert_same(from_torch(data))
    assert_same(from_torch(torch.utils.data.DataLoader(data, batch_size=25)))
    assert_same(from_torch(torch.utils.data.DataLoader(data, batch_size=None)))
    loader = torch.utils.data.DataLoader(data, batch_size=25)
    assert_same(from_torch(loader, limit=30), SOME[:30])
    assert_same(from_torch(torch.utils.data.Subset(data, [5, 3])), SOME[[5, 3]])


def test_iterable_data_sets_of_torch_give_their_first_images():
    torch = pytest.importorskip("torch")

    class Stream(torch.utils.data.IterableDataset):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Iterator[Any]:
            return iter(tensors())

    assert_same(from_torch(Stream(), limit=7), SOME[:7])


def test_windows_of_torch_become_channels_last():
    torch = pytest.importorskip("torch")
    windows = torch.arange(2 * 3 * 5.0).reshape(2, 3, 5)
    data = from_torch(torch.utils.data.TensorDataset(windows, torch.arange(2)), features=True)
    assert data.images.shape == (2, 1, 5, 3)
    np.testing.assert_array_equal(data.images[:, 0], windows.permute(0, 2, 1).numpy())


def test_tensors_with_channels_last_are_refused():
    torch = pytest.importorskip("torch")
    wrong = torch.utils.data.TensorDataset(torch.tensor(SOME.images), torch.tensor(SOME.labels))
    message = (
        "torch: samples have shape (28, 28, 1): those of torch must be (C, H, W) with 1, 3 or 4 "
        "channels; give channels_first=False for (H, W, C), or features=True for what is not "
        "an image"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        from_torch(wrong)
    assert_same(from_torch(wrong, channels_first=False))


def stream() -> Iterator[tuple[np.ndarray, int]]:
    """The samples one by one, for ever."""
    return ((image, label) for image, label in itertools.cycle(SOME))


def test_samples_and_batches_of_a_stream_give_the_same_data_set():
    for source in (batches(), batches, itertools.islice(stream(), 60)):
        assert_same(from_stream(source))
    assert_same(from_stream(stream, limit=70), SOME + SOME[:10])
    assert_same(from_stream(batches, limit=30), SOME[:30])
    assert repr(from_stream(batches)) == "Dataset('stream', 60 images 28x28x1, 10 classes)"


def test_a_stream_that_breaks_off_is_begun_anew():
    def broken() -> Iterator[Any]:
        yield from itertools.islice(stream(), 33)
        raise OSError("the camera is gone")

    with pytest.raises(OSError, match=r"^the camera is gone$"):
        from_stream(broken, limit=50)
    assert_same(from_stream(broken, limit=33), SOME[:33])


def test_labels_of_a_stream_may_be_targets_or_missing():
    rows = np.arange(12, dtype=np.float64).reshape(6, 2)
    single = from_stream(zip(SOME.images, rows, strict=False))
    assert single.labels.tolist() == rows.tolist()
    assert repr(single) == "Dataset('stream', 6 images 28x28x1, 2 targets)"
    whole = from_stream([(SOME.images[:4], rows[:4]), (SOME.images[4:6], rows[4:])])
    assert whole.labels.tolist() == rows.tolist()
    bare = from_stream((image, None) for image in SOME.images)
    assert (bare.is_labeled, len(bare)) == (False, 60)


@pytest.mark.parametrize("label", [70000, np.uint64(2**64 - 1)])
@pytest.mark.parametrize("batch", [1, 5])
def test_a_label_of_no_model_ends_a_stream_where_it_comes(label, batch):
    came = []

    def bad() -> Iterator[Any]:
        for number in itertools.count():
            came.append(number)
            labels = np.array([label if i == 6 else i for i in range(10)], np.uint64)
            part = slice(number * batch, (number + 1) * batch)
            yield SOME.images[part], labels[part]

    message = (
        f"stream: sample 6: label {label} is above 65535, the largest of any model; number the "
        "classes from 0, without gaps"
    )
    with pytest.raises(ValueError, match=f"^{message}$") as caught:
        from_stream(bad)
    assert type(caught.value) is ValueError  # no FileError: there is none
    assert len(came) == 6 // batch + 1


def test_labels_of_a_stream_are_integers_of_any_kind():
    labels = [np.uint64(3), 4, np.int8(2)]
    assert from_stream(zip(SOME.images, labels, strict=False)).labels.tolist() == [3, 4, 2]


def test_class_names_are_checked_before_a_stream_is_read():
    for names, came in ((["a", "a"], 0), (["a", "b"], 2)):
        source = iter([(SOME.images[0], 1), (SOME.images[1], 2), (SOME.images[2], 0)])
        with pytest.raises(ValueError, match=r"twice or blank|sample 1: label 2 is out of range"):
            from_stream(source, class_names=names)
        assert len(list(source)) == 3 - came


def test_inputs_of_a_stream_may_be_floats_or_pictures():
    pillow = pytest.importorskip("PIL.Image")
    windows = np.random.default_rng(0).normal(size=(9, 4, 2))
    data = from_stream(zip(windows, range(9), strict=True), features=True)
    assert repr(data) == "Dataset('stream', 9 float32 inputs 1x4x2, 9 classes)"
    np.testing.assert_array_equal(data.images[:, 0], windows.astype(np.float32))
    images = np.arange(3 * 6 * 5 * 3, dtype=np.uint8).reshape(3, 6, 5, 3)
    pictures = [(pillow.fromarray(image), 0) for image in images]
    np.testing.assert_array_equal(from_stream(pictures).images, images)
    assert from_stream(pictures, size=4).images.shape == (3, 4, 4, 3)


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ([], ValueError, "stream gives nothing: a data set holds at least one image"),
        ([(SOME.images[0], 0), (SOME.images[1, :4], 1)], ValueError,
         "stream: inputs of 28x28x1 and 4x28x1: all must have one shape; give size=(height, width) "
         "for pictures, or a transform that resizes"),
        ([(SOME.images[0], 0), (SOME.images[1], None)], ValueError,
         "stream: a sample has no label, and those before it a class: all must be alike"),
        ([(SOME.images[0], np.ones(2)), (SOME.images[1], np.ones(3))], ValueError,
         "stream: a sample has 3 targets, and those before it 2 targets: all must be alike"),
        ([(SOME.images[:3], [0, 1])], ValueError,
         "stream: a batch of 3 inputs has labels of shape (2,): must be (3,)"),
        ([(SOME.images[0], -2)], ValueError,
         "stream: sample 0: label -2 is below 0; number the classes from 0"),
        ([(SOME.images[0], np.ones(2)), (SOME.images[1], np.array([1e300, 0.0]))], ValueError,
         "y holds 1e+300: must lie in -3.4e38 to 3.4e38, as float32 does; scale the numbers, or "
         "correct this one"),
        ([(SOME.images[0], [np.nan])], TypeError,
         "y is float64: must be integers, the number of each image's class; y[0] is NaN: leave "
         "out images without one"),
        ([(SOME.images[0], np.array([np.nan]))], ValueError,
         "stream: sample 0 has targets that are not finite: each must be a number"),
        ([SOME.images[0]], TypeError,
         "stream gives a ndarray: must be pairs (input, label); give from_stream a generator of "
         "such pairs, (input, None) without labels"),
        ([(np.full((4, 4, 3), np.nan), 0)], ValueError,
         "stream: float images hold values that are not finite: remove or replace them"),
        ([(SOME.images[:2].astype(np.float32) / 127.5 - 1, [0, 1])], ValueError,
         "stream: float images must lie in 0..1, these in -1..1: leave out transforms.Normalize, "
         "for the model normalizes pixels itself; or give features=True, where the numbers are "
         "what the network was trained on"),
        ([(SOME.images[:2].astype(np.int32), [0, 1])], TypeError,
         "stream: images are int32: must be uint8 (0..255) or float (0..1); give features=True for "
         "what is not an image"),
        ([{"image": SOME.images[:2]}], TypeError,
         "stream gives a dict of 1: must be pairs (input, label); give from_stream a generator of "
         "such pairs, (input, None) without labels"),
        ([(SOME.images[:2], [0, 1]), (SOME.images[:2, :9], [0, 1])], ValueError,
         "stream: inputs of 28x28x1 and 9x28x1: all must have one shape; give size=(height, width) "
         "for pictures, or a transform that resizes"),
        ([(SOME.images[:2].transpose(0, 3, 1, 2), [0, 1])], ValueError,
         "x has shape (2, 1, 28, 28): images must be (N, H, W, C), channels last; use "
         "x.transpose(0, 2, 3, 1)"),
    ],
)  # fmt: skip
def test_samples_of_a_stream_that_break_a_rule_are_refused(source, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        from_stream(source)
