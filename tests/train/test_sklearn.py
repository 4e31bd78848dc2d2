"""`pmt.sklearn`: what scikit-learn's own tools do with a classifier of pmt's."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import pmt
from pmt.sklearn import PmtClassifier

OPTIONS = {"layers": "head", "epochs": 1, "queries": 2, "preparation": "none", "keep_best": False}


@pytest.fixture(scope="module")
def foggy() -> pmt.datasets.Dataset:
    return pmt.corruptions.corrupt(pmt.datasets.bundled("train")[:120], "fog", 5, seed=1)


def test_a_search_varies_options_of_a_classifier_in_a_pipeline(foggy) -> None:
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


def test_the_model_that_is_given_stays_and_rows_of_pixels_are_images(foggy) -> None:
    model = pmt.load("fashion_mnist_dscnn")
    image = model.image()
    classifier = PmtClassifier(model, threads=1, **OPTIONS)
    rows = foggy.images.reshape(len(foggy), -1)
    assert classifier.fit(rows, foggy.labels) is classifier
    assert model.image() == image != classifier.model_.image()
    np.testing.assert_array_equal(classifier.predict(rows), classifier.predict(foggy.images))


def test_parameters_go_through_clone_and_back() -> None:
    classifier = PmtClassifier("cifar10_small", method="paper", epochs=3)
    again = clone(classifier).set_params(epochs=4, threads=2)
    assert again.get_params() == {
        "model": "cifar10_small", "method": "paper", "threads": 2, "epochs": 4,
    }  # fmt: skip
    assert classifier.options == {"epochs": 3}
    with pytest.raises(ValueError, match=r"^option 'epoch' is unknown; did you mean 'epochs'"):
        again.set_params(epoch=1).fit(np.zeros((4, 32, 32, 3), np.uint8), [0, 1, 2, 3])
    with pytest.raises(NotFittedError):
        again.predict(np.zeros((1, 32, 32, 3), np.uint8))


def test_without_scikit_learn_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['sklearn.base'] = None; import pmt.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: pmt.sklearn needs scikit-learn: pip install "
        '"poor-mans-training[sklearn]", or in a clone pip install ".[sklearn]"'
    )
