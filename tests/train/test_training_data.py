"""Warnings and errors of fit and evaluate about images that do not go with model or valid."""

import re

import numpy as np
import pytest

import pmt
from pmt.datasets import Dataset
from pmt.train.training_data import checked_training_data

MODEL = pmt.load("fashion_mnist_dscnn")  # ten classes
SOME = pmt.datasets.bundled("train").take(100)
TESTED = pmt.datasets.bundled("test").take(100)


def of_labels(labels: list[int], names: list[str] | None = None, name: str = "mine") -> Dataset:
    images = np.resize(SOME.images, (len(labels), 28, 28, 1))
    return Dataset.from_arrays(images, labels, class_names=names, name=name)


def fit(data: Dataset, valid: Dataset | None = None) -> None:
    trainer = pmt.ZOTrainer(layers="head", batch=10, epochs=1, preparation="none")
    trainer.fit(MODEL.copy(), data, valid=valid, progress=False)


def assert_warns(message: str, data: Dataset, valid: Dataset | None = None) -> None:
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as caught:
        fit(data, valid)
    assert len(caught) == 1


def test_images_that_go_together_bring_no_warning():
    data, valid = checked_training_data(MODEL, SOME, (SOME.images[:50], SOME.labels[:50]))
    assert data is SOME
    assert repr(valid) == "Dataset('valid', 50 images 28x28x1, 10 classes)"
    assert checked_training_data(MODEL, SOME, None) == (SOME, None)


def test_images_of_one_class_alone():
    images = pmt.datasets.bundled("train")
    by_class = images[np.argsort(images.labels, kind="stable")]
    assert_warns(
        "all 10 training images of 'fashion_mnist_train' are of class 0 ('T-shirt/top'), and the "
        "model has 10: where files are sorted by class, shuffle before you cut, "
        "data.shuffled(0).take(10)",
        by_class.take(10),
    )
    assert_warns(
        "all 12 training images of 'mine' are of class 3, and the model has 10: where files are "
        "sorted by class, shuffle before you cut, data.shuffled(0).take(12)",
        of_labels([3] * 12),
    )


def test_a_file_sorted_by_class_is_drawn_evenly(tmp_path):
    by_class = SOME[np.argsort(SOME.labels, kind="stable")]
    pmt.datasets.save_npz(by_class, tmp_path / "sorted.npz")
    data = pmt.datasets.load(tmp_path / "sorted.npz", limit=40)
    assert len(set(data.labels.tolist())) == 10
    schedule = pmt.ZOTrainer(batch=20).schedule(MODEL, len(by_class))
    first = by_class.labels[schedule.indices(0)]
    assert len(set(first.tolist())) >= 7


def test_two_classes_for_a_model_of_ten():
    assert_warns(
        "data set 'mine' has images of 2 of the model's 10 classes (0, 1): the model will forget "
        "the others; "
        "give it a new last layer by classes=2 (--classes), or add images of all",
        of_labels([0, 1] * 10),
    )
    assert_warns(
        "data set 'mine' has images of 2 of the model's 10 classes (3, 8): the model will forget "
        "the others; give it a new last layer by classes=2 (--classes) for labels "
        "numpy.unique(y, return_inverse=True)[1], or add images of all",
        of_labels([3, 8] * 10),
    )
    message = (
        "data set 'mine' has 2 classes (cat, dog), the model 10: label 0 of both must be the same "
        "class, and so on; give all of the model's classes as class_names (--class-names), or "
        "the model a new last layer by classes=2 (--classes)"
    )
    named = of_labels([0, 1] * 10, ["cat", "dog"])
    assert_warns(message, named)
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as caught:
        MODEL.evaluate(named)
    assert caught[0].filename == __file__


def lacking(*shares: int) -> Dataset:
    """The first bundled images of each class."""
    images = pmt.datasets.bundled("train")
    rows = [np.flatnonzero(images.labels == label)[:count] for label, count in enumerate(shares)]
    return images.subset(np.concatenate(rows))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            lacking(8, 8, 8, 8, 8),
            "data set 'fashion_mnist_train' has one image or none of 5 of the model's 10 classes "
            "(Sandal, Shirt, Sneaker, Bag and 1 more): training may unlearn them, and held-out "
            "images do not show it; add some images of each",
        ),
        (
            lacking(2, 2, 2, 2, 2, 2, 2, 1, 3, 3),
            "data set 'fashion_mnist_train' has one image or none of 1 of the model's 10 classes "
            "(Sneaker): training may unlearn them, and held-out images do not show it; add some "
            "images of each",
        ),
        (
            of_labels([0, 1, 2, 3, 4, 5] * 4),
            "data set 'mine' has one image or none of 4 of the model's 10 classes (6, 7, 8, 9): "
            "training may unlearn them, and held-out images do not show it; add some images of "
            "each",
        ),
    ],
)
def test_classes_that_training_images_lack(data, message):
    assert_warns(message, data)
    short = {"layers": "head", "batch": 10, "epochs": 1, "preparation": "none"}
    pmt.ZOTrainer(**short).fit(MODEL.copy(), data, held_out=TESTED, progress=False)
    # A loss without labels does not read which classes there are.
    trainer = pmt.ZOTrainer(**short, loss="entropy", keep_best=False)
    trainer.fit(MODEL.copy(), data, progress=False)


def test_classes_of_a_new_head_cannot_be_unlearned():
    names = [f"animal {number}" for number in range(10)]
    checked_training_data(MODEL, of_labels([0, 1, 2, 3, 4, 5] * 4, names), None)
    blank = MODEL.copy()
    blank.set_weights("head", np.zeros_like(blank.weights("head")))
    checked_training_data(blank, lacking(8, 8, 8, 8, 8), None)
    checked_training_data(MODEL, lacking(2, 2, 2, 2, 2, 2, 2, 2, 2, 2), None)
    checked_training_data(MODEL, lacking(4, 4, 4, 4, 3), None)  # too few to choose a state


def test_classes_that_are_corruptions():
    names = ["fog", "frost", "gaussian_noise", "snow", "jpeg_compression"]
    assert_warns(
        "the classes of data set 'mine' are names of corruptions (fog, frost, gaussian_noise, snow "
        "and 1 more): corrupted copies are read with --corruption NAME, in Python with "
        "pmt.datasets.load_corrupted",
        of_labels([0, 1, 2, 3, 4] * 2, names),
    )


def test_labels_outside_of_the_models_classes():
    message = (
        "data set 'mine' has label 11, the model has 10 classes (0..9); use another data set, or "
        "give the model a new last layer by classes=12 (--classes)"
    )
    for data, valid in ((of_labels([11]), None), (SOME, of_labels([11]))):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            fit(data, valid)


def test_valid_of_other_classes():
    first, last = SOME[SOME.labels < 5].take(19), SOME[SOME.labels >= 5]
    message = (
        "data has images of the classes 0, 1, 2, 3 and 1 more and valid of 5, 6, 7, 8 and 1 more, "
        "none in common: hold valid out of the same images, data.shuffled(0).split(0.9, seed=0)"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        fit(first, last)
    most = last + TESTED[TESTED.labels < 5].take(5)
    assert_warns(
        f"{len(last)} of {len(most)} images of valid are of classes that no training image has: "
        "5, 6, 7, 8 and 1 more; where files are sorted by class, shuffle before you part them, "
        "data.shuffled(0)",
        first,
        most,
    )


def test_data_and_valid_that_name_a_class_differently():
    few = pmt.Model(MODEL.image())
    names = [f"bird {number}" for number in range(10)]
    message = (
        "class 0 is 'bird 0' in data ('mine') and 'T-shirt/top' in valid "
        "('fashion_mnist_train'): load both with one class_names=[...]"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        checked_training_data(few, of_labels(list(range(10)), names), SOME)


def test_evaluation_of_one_class_is_quiet():
    assert MODEL.evaluate(SOME[SOME.labels == 3]).n > 5
