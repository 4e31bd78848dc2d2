"""Two models on the same images: differences and their intervals."""

import math

import numpy as np
import pytest
from networks import labels, pixels, residual_network

import pmt
from pmt.datasets import Dataset
from pmt.model import ImageScores

NAMES = ("ant", "bee", "cat", "dog")


def scores(losses: list[float], correct: list[int]) -> ImageScores:
    predicted = np.zeros(len(losses), np.int64)
    return ImageScores(np.array(losses), np.array(correct, np.bool_), predicted)


A = scores([1.0, 2.0, 0.5, 0.5], [0, 0, 1, 1])
B = scores([0.5, 1.0, 0.5, 1.0], [1, 1, 1, 0])


def test_differences_are_paired_by_image():
    found = pmt.Comparison.of_scores(("start", "trained"), A, B)
    # Differences in accuracy 1, 1, 0, -1 and in loss -0.5, -1, 0, 0.5.
    assert (found.accuracy.mean, found.loss.mean) == (0.25, -0.25)
    assert found.accuracy.standard_error == pytest.approx(
        math.sqrt(np.var([1, 1, 0, -1], ddof=1)) / 2
    )
    assert found.loss.interval == pytest.approx((-0.88257, 0.38257), abs=1e-5)
    assert (found.only_a, found.only_b) == (1, 2)
    assert str(found) == (
        "model                    accuracy                loss\n"
        "a: start                   0.5000              1.0000\n"
        "b: trained                 0.7500              0.7500\n"
        "b - a                     +0.2500             -0.2500\n"
        "95 % interval  -0.6883 to +1.1883  -0.8826 to +0.3826\n"
        "4 images: a alone is right on 1, b alone on 2"
    )
    assert repr(found) == str(found)
    assert found._repr_html_().startswith(
        "<table><caption>4 images: a alone is right on 1, b alone on 2</caption><thead><tr>"
        "<th>model</th><th>accuracy</th><th>loss</th></tr></thead><tbody><tr><td>a: start</td>"
    )


def test_the_figures_for_json():
    found = pmt.Comparison.of_scores(("start", "trained"), A, B).to_json()
    assert found["a"] == {"accuracy": 0.5, "loss": 1.0, "n": 4}
    assert found["b"] == {"accuracy": 0.75, "loss": 0.75, "n": 4}
    assert (found["only_a"], found["only_b"]) == (1, 2)
    assert found["loss"]["difference"] == -0.25
    assert found["loss"]["interval"] == pytest.approx([-0.88257, 0.38257], abs=1e-5)
    assert found["loss"]["significant"] is False


@pytest.fixture
def data():
    model = residual_network()
    return Dataset(pixels(model, 20), labels(model, 20), NAMES, "random")


def test_models_are_compared_by_what_evaluate_says(data):
    a, b = residual_network(), residual_network(seed=1)
    found = pmt.compare(a, b, data, threads=1)
    assert (found.a, found.b) == (a.evaluate(data), b.evaluate(data))
    assert found.loss.mean == pytest.approx(found.b.loss - found.a.loss)
    assert found.names == ("residual", "residual")
    same = pmt.compare(a, a, data)
    assert (same.accuracy.interval, same.loss.interval) == ((0.0, 0.0), (0.0, 0.0))


def test_files_and_runs_are_loaded(data, tmp_path):
    start = residual_network()
    start.save(tmp_path / "start.pmt")
    trainer = pmt.ZOTrainer(layers="head", epochs=1, batch=10, threads=1)
    trained = trainer.fit(start.copy(), data, out=tmp_path / "run", progress=False).model
    found = pmt.compare(tmp_path / "start.pmt", str(tmp_path / "run"), data)
    assert (found.a, found.b) == (start.evaluate(data), trained.evaluate(data))
    assert found.names == (str(tmp_path / "start.pmt"), str(tmp_path / "run"))
    again = pmt.compare("fashion_mnist_dscnn", "fashion_mnist_dscnn", pmt.datasets.bundled("test"))
    assert again.names == ("fashion_mnist_dscnn", "fashion_mnist_dscnn")
    run = pmt.RunFolder(tmp_path / "run")
    assert pmt.load(run).image() == pmt.load(tmp_path / "run").image()
    assert pmt.compare(start, run, data).b == trained.evaluate(data)


def test_one_image_is_too_few(data):
    message = (
        "^the scores are of 1 and 1 images: a comparison needs the same images for both, 2 or more$"
    )
    with pytest.raises(ValueError, match=message):
        pmt.compare(residual_network(), residual_network(), data.take(1))
