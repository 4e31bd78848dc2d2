"""`pmt.sklearn`: what scikit-learn's own tools do with a classifier of pmt's."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import pmt
from pmt.sklearn import PmtClassifier

OPTIONS = {
    "layers": "head",
    "epochs": 1,
    "queries": 2,
    "batch": 10,
    "preparation": "none",
    "keep_best": False,
}


@pytest.fixture(scope="module")
def foggy():
    return pmt.corruptions.corrupt(pmt.datasets.bundled("train")[:120], "fog", 5, seed=1)


def test_a_search_varies_options_of_a_classifier_in_a_pipeline(foggy):
    inverted = FunctionTransformer(lambda pixels: 255 - pixels, validate=False)
    steps = make_pipeline(inverted, PmtClassifier("fashion_mnist_dscnn", threads=1, **OPTIONS))
    search = GridSearchCV(steps, {"pmtclassifier__preparation": ["none", "head"]}, cv=2)
    search.fit(255 - foggy.images, foggy.labels)
    assert search.best_params_ == {"pmtclassifier__preparation": "head"}
    found = search.best_estimator_[-1]
    model = pmt.load("fashion_mnist_dscnn")
    pmt.ZOTrainer(threads=1, **{**OPTIONS, "preparation": "head"}).fit(model, foggy, progress=False)
    assert found.model_.image() == model.image()
    np.testing.assert_array_equal(found.classes_, np.arange(10))
    np.testing.assert_array_equal(search.predict(255 - foggy.images), model.predict(foggy.images))
    assert found.predict_proba(foggy.images).shape == (120, 10)


def test_the_model_that_is_given_stays_and_rows_of_pixels_are_images(foggy):
    model = pmt.load("fashion_mnist_dscnn")
    image = model.image()
    classifier = PmtClassifier(model, threads=1, **OPTIONS)
    rows = foggy.images.reshape(len(foggy), -1)
    assert classifier.fit(rows, foggy.labels) is classifier
    assert model.image() == image != classifier.model_.image()
    np.testing.assert_array_equal(classifier.predict(rows), classifier.predict(foggy.images))


def test_parameters_go_through_clone_and_back():
    classifier = PmtClassifier("cifar10_small", method="paper", epochs=3)
    again = clone(classifier).set_params(epochs=4, threads=2)
    assert again.get_params() == {
        "model": "cifar10_small", "method": "paper", "threads": 2, "epochs": 4,
    }  # fmt: skip
    assert classifier.options == {"epochs": 3}
    for unknown in ({"epoch": 1}, {"model__x": 3}):
        with pytest.raises(ValueError, match=rf"^option '{next(iter(unknown))}' is unknown"):
            again.set_params(**unknown)
    assert again.set_params(method="bias_only", queries=4).options["queries"] == 4
    with pytest.raises(NotFittedError):
        again.predict(np.zeros((1, 32, 32, 3), np.uint8))


@pytest.mark.filterwarnings("ignore:data set 'data' has images of 4")
def test_names_of_classes_and_a_part_of_them(foggy):
    names = np.array(foggy.class_names)
    few = foggy.subset(np.flatnonzero(foggy.labels % 3 == 0))
    by_number = PmtClassifier("fashion_mnist_dscnn", threads=1, **OPTIONS)
    by_name = clone(by_number)
    by_number.fit(few.images, few.labels)
    by_name.fit(few.images, names[few.labels])
    assert by_number.model_.image() == by_name.model_.image()
    np.testing.assert_array_equal(by_number.classes_, [0, 3, 6, 9])
    np.testing.assert_array_equal(by_name.classes_, sorted(names[[0, 3, 6, 9]]))
    found = by_number.predict(foggy.images)
    np.testing.assert_array_equal(by_name.predict(foggy.images), names[found])
    assert set(found) <= {0, 3, 6, 9}
    shares = by_number.predict_proba(foggy.images)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
    proba = cross_val_predict(by_number, few.images, few.labels, cv=2, method="predict_proba")
    assert proba.shape == (len(few), 4)
    with pytest.raises(ValueError, match=r"^y has the label 'Hat', no class of the model: the mod"):
        by_name.fit(few.images, np.where(few.labels == 3, "Hat", names[few.labels]))


def test_a_model_without_names_takes_any_labels_in_their_order(foggy):
    few = foggy[(foggy.labels == 3) | (foggy.labels == 8)]
    new = PmtClassifier(pmt.load("fashion_mnist_dscnn", classes=2), threads=1, **OPTIONS)
    new.set_params(preparation="head")
    words = np.where(few.labels == 3, "three", "eight")
    for labels, classes in ((few.labels, [3, 8]), (words, ["eight", "three"])):
        found = clone(new).fit(few.images, labels)
        assert found.classes_.tolist() == classes
        assert found.score(few.images, labels) > 0.8
    remedy = r"; PmtClassifier\(pmt.load\(path, classes=3\)\) learns any labels$"
    with pytest.raises(ValueError, match=f"^y has the label 'a', .*: it has 2 classes{remedy}"):
        new.fit(few.images[:3], ["a", "b", "c"])
    with pytest.raises(
        ValueError, match=f"^y has the label 10, .*: the model's classes .*{remedy}"
    ):
        PmtClassifier("fashion_mnist_dscnn").fit(few.images[:3], [0, 10, 11])


def test_a_scaler_before_it_may_give_float64(foggy):
    classifier = PmtClassifier("fashion_mnist_dscnn", threads=1, **OPTIONS)
    rows = foggy.images.reshape(len(foggy), -1)
    steps = make_pipeline(FunctionTransformer(lambda rows: rows / 255.0), classifier)
    assert 0.0 < steps.fit(rows, foggy.labels).score(rows, foggy.labels) <= 1.0


def test_without_scikit_learn_the_error_says_what_to_install():
    code = "import sys; sys.modules['sklearn.base'] = None; import pmt.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "pmt.errors.MissingExtraError: pmt.sklearn needs scikit-learn: pip install "
        '"poor-mans-training[sklearn]", or in a clone pip install ".[sklearn]"'
    )
