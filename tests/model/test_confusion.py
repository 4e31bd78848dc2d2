"""The confusion matrix: counts, accuracy by class, text, HTML and plot."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import labels, pixels, residual_network

import pmt
from pmt.datasets import Dataset

NAMES = ("ant", "bee", "cat", "dog")


def confusion(matrix: list[list[int]], names: tuple[str, ...] = NAMES) -> pmt.Confusion:
    return pmt.Confusion(np.array(matrix, np.int64), names)


MIXED = confusion([[12, 0, 3, 1], [0, 0, 0, 0], [0, 2, 1200, 2], [0, 0, 0, 7]])


def test_a_model_counts_labels_and_predictions():
    model = residual_network()
    data = Dataset(pixels(model, 30), labels(model, 30), NAMES, "random")
    found = model.confusion(data, threads=1)
    expected = np.zeros((4, 4), np.int64)
    np.add.at(expected, (data.labels, model.predict(data.images)), 1)
    assert found.matrix.dtype == np.int64
    np.testing.assert_array_equal(found.matrix, expected)
    assert found.accuracy == model.evaluate(data).accuracy
    assert found.class_names == NAMES


def test_scores_hold_what_evaluate_says():
    model = residual_network()
    data = Dataset(pixels(model, 30), labels(model, 30), NAMES, "random")
    scores = model.score_images(data)
    assert scores.evaluation == model.evaluate(data)
    np.testing.assert_array_equal(scores.predicted, model.predict(data.images))


@pytest.mark.parametrize(
    ("of_data", "of_model", "shown"),
    [
        (("0", "1", "2"), None, ("0", "1", "2", "3")),
        (("0", "1", "2"), list(NAMES), NAMES),
        (("apple", "bread"), None, ("apple", "bread", "2", "3")),
        (("apple", "bread"), list(NAMES), ("apple", "bread", "2", "3")),
        (("a", "b", "c", "d", "e"), None, ("a", "b", "c", "d")),
    ],
)
@pytest.mark.filterwarnings("ignore:data set 'few' has 2 classes")
def test_the_names_are_the_datas_or_else_the_models(of_data, of_model, shown):
    graph = residual_network().to_graph()
    graph.metadata = {} if of_model is None else {"class_names": of_model}
    model = pmt.Model.from_graph(graph)
    data = Dataset(pixels(model, 4), np.zeros(4, np.int64), of_data, "few")
    assert model.confusion(data).class_names == shown


def test_accuracy_by_class():
    np.testing.assert_allclose(MIXED.accuracy_by_class, [0.75, np.nan, 1200 / 1204, 1.0])
    assert MIXED.images.tolist() == [16, 0, 1204, 7]
    assert MIXED.accuracy == 1219 / 1227
    assert MIXED.most_frequent_errors() == [(0, 2, 3), (2, 1, 2), (2, 3, 2), (0, 3, 1)]
    assert MIXED.to_json() == {
        "class_names": list(NAMES),
        "matrix": [[12, 0, 3, 1], [0, 0, 0, 0], [0, 2, 1200, 2], [0, 0, 0, 7]],
        "accuracy_by_class": [0.75, None, 1200 / 1204, 1.0],
    }


def test_the_matrix_as_text():
    assert repr(MIXED) == (
        "1,227 images, accuracy 0.9935; rows: class, columns: predicted class\n"
        "class   0  1      2  3  accuracy\n"
        "0 ant  12  0      3  1    0.7500\n"
        "1 bee   0  0      0  0         -\n"
        "2 cat   0  2  1,200  2    0.9967\n"
        "3 dog   0  0      0  7    1.0000"
    )


def test_the_classes_as_text():
    assert MIXED.by_class() == (
        "class  images  accuracy  most often taken for\n"
        "ant        16    0.7500  cat (3)\n"
        "bee         0         -\n"
        "cat     1,204    0.9967  bee (2)\n"
        "dog         7    1.0000"
    )


def test_of_many_classes_the_most_frequent_errors_are_shown():
    matrix = np.diag(np.full(21, 9))
    matrix[3, 4], matrix[20, 0] = 2, 5
    many = confusion(matrix.tolist(), tuple(f"class {i}" for i in range(21)))
    assert str(many) == (
        "196 images, accuracy 0.9643; the most frequent errors among 21 classes\n"
        "class     predicted  images\n"
        "class 20  class 0         5\n"
        "class 3   class 4         2"
    )


def test_the_matrix_as_html_escapes_names():
    small = confusion([[3, 1], [0, 0]], ("<b>", "c"))
    assert small._repr_html_() == (
        "<table><caption>4 images, accuracy 0.7500; rows: class, columns: predicted class"
        "</caption><thead><tr><th>class</th><th>0</th><th>1</th><th>accuracy</th></tr></thead>"
        "<tbody><tr><td>0 &lt;b&gt;</td><td>3</td><td>1</td><td>0.7500</td></tr>"
        "<tr><td>1 c</td><td>0</td><td>0</td><td>-</td></tr></tbody></table>"
    )


@settings(max_examples=40, deadline=None)
@given(
    matrix=st.integers(1, 6).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, 9), min_size=n, max_size=n), min_size=n,
                           max_size=n)
    )
)  # fmt: skip
def test_errors_and_right_images_are_all_images(matrix):
    found = confusion([[1 + matrix[0][0], *matrix[0][1:]], *matrix[1:]])
    errors = found.most_frequent_errors(found.matrix.size)
    assert sum(n for _, _, n in errors) + found.matrix.trace() == found.images.sum()
    assert [n for _, _, n in errors] == sorted((n for _, _, n in errors), reverse=True)


def test_the_plot_shows_counts_and_names():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    ax = Figure(layout="constrained").add_subplot()
    assert MIXED.plot(ax) is ax
    assert [text.get_text() for text in ax.texts] == ["12", "3", "1", "2", "1200", "2", "7"]
    assert [text.get_text() for text in ax.get_xticklabels()] == list(NAMES)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("predicted class", "class")
    assert ax.images[0].get_array()[0].tolist() == [0.75, 0, 0.1875, 0.0625]


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "poor-mans-training\[plot\]"'):
        MIXED.plot()
