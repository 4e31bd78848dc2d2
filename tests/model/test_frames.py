"""Results as data frames of pandas."""

import numpy as np
import pytest

import pmt

pandas = pytest.importorskip("pandas")


def test_an_evaluation_and_a_confusion_as_frames():
    model, data = pmt.load("fashion_mnist_dscnn"), pmt.datasets.bundled("test")[:50]
    found = model.evaluate(data)
    frame = found.to_frame()
    assert frame.to_dict("index") == {
        "model": {"accuracy": found.accuracy, "loss": found.loss, "n": 50}
    }
    confusion = model.confusion(data)
    frame = confusion.to_frame()
    assert (frame.index.name, frame.columns.name) == ("class", "predicted")
    assert list(frame.index) == list(frame.columns) == list(confusion.class_names)
    np.testing.assert_array_equal(frame.to_numpy(), confusion.matrix)
    assert frame.loc["Sandal", "Sandal"] == confusion.matrix[5, 5]


def test_a_comparison_as_a_frame():
    data = pmt.datasets.bundled("test")[:50]
    model = pmt.load("fashion_mnist_dscnn")
    other = model.copy()
    pmt.ZOTrainer(layers="head", epochs=1).fit(other, data, progress=False)
    compared = pmt.compare(model, other, data)
    frame = compared.to_frame()
    assert list(frame.index) == [*compared.names, "difference", "low", "high"]
    assert frame.index.name == "model"
    assert frame.loc["difference", "loss"] == compared.loss.mean
    assert tuple(frame.loc[["low", "high"], "accuracy"]) == tuple(compared.accuracy.interval)
