"""Labels, probabilities, the most probable classes, of arrays and files; the confusion matrix."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import labels, pixels, residual_network

import pmt
from pmt.datasets import Dataset
from pmt.datasets.unlabeled import find_files
from pmt.model import predict
from pmt.model.scores import most_probable, probabilities


def test_labels_are_those_of_the_largest_logits():
    model = residual_network()
    images = pixels(model, 6)
    labels = model.predict(images, threads=1)
    assert (labels.dtype, labels.shape) == (np.int64, (6,))
    np.testing.assert_array_equal(labels, model.logits(images).argmax(axis=1))


def test_bundled_images_are_named():
    model = pmt.load("fashion_mnist_dscnn")
    images = pmt.datasets.bundled("test").images[:3]
    labels = model.predict(images)
    assert [model.class_names[label] for label in labels] == ["Ankle boot", "Pullover", "Trouser"]
    assert model.predict(images, top=2).tolist() == [[9, 5], [2, 4], [1, 2]]


def test_probabilities_sum_to_1_and_the_most_probable_come_first():
    model = residual_network()
    images = pixels(model, 5)
    shares = model.predict_proba(images)
    assert (shares.dtype, shares.shape) == (np.float32, (5, 4))
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-6)
    top = model.predict(images, top=4)
    assert (top.dtype, top.shape) == (np.int64, (5, 4))
    assert (np.diff(np.take_along_axis(shares, top, axis=1), axis=1) <= 0).all()
    np.testing.assert_array_equal(top[:, 0], model.predict(images))
    np.testing.assert_array_equal(model.predict(images, top=1)[:, 0], model.predict(images))


def test_floats_of_any_width_are_predicted_as_they_are_evaluated():
    model = pmt.load("fashion_mnist_dscnn")
    data = pmt.datasets.bundled("test").take(50)
    floats = data.images / 255.0
    assert floats.dtype == np.float64
    found = model.predict(floats)
    np.testing.assert_array_equal(found, model.predict(data))
    assert (found == data.labels).mean() == model.evaluate(floats, data.labels).accuracy
    np.testing.assert_array_equal(model.predict_proba(floats).argmax(axis=1), found)


def test_of_equal_logits_the_lower_label_comes_first():
    logits = np.array([[1, 3, 3, 0], [2, 2, 2, 2]], np.float32)
    assert most_probable(logits, 3).tolist() == [[1, 2, 0], [0, 1, 2]]


def test_probabilities_are_the_softmax():
    logits = np.log(np.array([[1, 2, 5]], np.float32))
    np.testing.assert_allclose(probabilities(logits), [[0.125, 0.25, 0.625]], rtol=1e-6)
    assert probabilities(np.array([[1e30, -1e30]], np.float32)).tolist() == [[1, 0]]


@settings(max_examples=25, deadline=None)
@given(rows=st.integers(0, 5), classes=st.integers(1, 7), data=st.data())
def test_shapes(rows, classes, data):
    logits = np.random.default_rng(0).normal(size=(rows, classes)).astype(np.float32)
    top = data.draw(st.integers(1, classes))
    assert most_probable(logits, top).shape == (rows, top)
    assert probabilities(logits).shape == (rows, classes)


@pytest.mark.parametrize(
    ("top", "error", "message"),
    [
        (0, ValueError, "top 0: must be 1 to 4, the number of classes"),
        (5, ValueError, "top 5: must be 1 to 4, the number of classes"),
        (1.5, TypeError, "top=1.5 must be an integer"),
    ],
)
def test_a_wrong_top_is_refused(top, error, message):
    model = residual_network()
    with pytest.raises(error) as raised:
        model.predict(pixels(model, 1), top=top)
    assert str(raised.value) == message


def test_class_names_are_those_of_the_metadata_if_there_is_one_for_each():
    graph = residual_network().to_graph()
    assert pmt.Model.from_graph(graph).class_names is None
    graph.metadata = {"class_names": ["ant", "bee", "cat", "dog"]}
    assert pmt.Model.from_graph(graph).class_names == ("ant", "bee", "cat", "dog")
    graph.metadata = {"class_names": ["ant", "bee"]}
    assert pmt.Model.from_graph(graph).class_names is None


def save_png(path, array):
    image = pytest.importorskip("PIL.Image")
    path.parent.mkdir(exist_ok=True)
    image.fromarray(array).save(path)


@pytest.fixture
def pictures(tmp_path):
    """Files of several kinds, and their pixels as the network sees them."""
    model = residual_network()
    images = pixels(model, 5)
    gray = images[1, ..., 0]
    save_png(tmp_path / "photos" / "b.png", images[0])
    save_png(tmp_path / "photos" / "a.png", gray)
    save_png(tmp_path / "photos" / ".hidden.png", images[0])
    (tmp_path / "photos" / "notes.txt").write_text("no image")
    np.savez(tmp_path / "some.npz", images=images[2:4])
    save_png(tmp_path / "last.png", images[4])
    seen = np.stack([np.repeat(gray[..., None], 3, axis=2), images[0], *images[2:]])
    return model, seen


def test_files_are_predicted_in_their_order(tmp_path, pictures):
    model, seen = pictures
    places = ["photos", "some.npz", "last.png"]
    found = predict(model, [tmp_path / place for place in places], top=2)
    names = ["photos/a.png", "photos/b.png", "some.npz[0]", "some.npz[1]", "last.png"]
    assert found.files == [str(tmp_path / name) for name in names]
    np.testing.assert_array_equal(found.labels, model.predict(seen, top=2))
    shares = np.take_along_axis(model.predict_proba(seen), found.labels, axis=1)
    np.testing.assert_array_equal(found.probabilities, shares)
    first = found.to_json()["predictions"][0]["classes"][0]
    label = int(found.labels[0, 0])
    assert first == {"label": label, "name": None, "probability": float(shares[0, 0])}


def test_blocks_do_not_change_the_predictions(tmp_path, pictures, monkeypatch):
    model, _ = pictures
    places = [tmp_path / "photos", tmp_path / "some.npz"]
    whole = predict(model, places)
    monkeypatch.setattr("pmt.datasets.unlabeled.BLOCK", 1)
    parts = predict(model, places)
    assert parts.files == whole.files
    np.testing.assert_array_equal(parts.labels, whole.labels)
    np.testing.assert_array_equal(parts.probabilities, whole.probabilities)


def test_images_are_resized_to_the_input(tmp_path):
    model = residual_network()
    big = np.random.default_rng(0).integers(0, 256, (20, 12, 3)).astype(np.uint8)
    save_png(tmp_path / "big.png", big)
    np.savez(tmp_path / "big.npz", images=big[None])
    found = predict(model, [tmp_path / "big.png", tmp_path / "big.npz"])
    assert found.probabilities[0, 0] == found.probabilities[1, 0]


def test_given_names_replace_the_models(tmp_path, pictures):
    model, _ = pictures
    names = ("ant", "bee", "cat", "dog")
    found = predict(model, [tmp_path / "last.png"], class_names=names)
    name = found.class_name(int(found.labels[0, 0]))
    assert found.to_json()["predictions"][0]["classes"][0]["name"] == name
    assert name in names


def test_what_cannot_be_predicted_is_named(tmp_path, pictures):
    model, _ = pictures
    gray = pmt.load("fashion_mnist_dscnn")
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.png").write_bytes(b"no image")
    np.savez(tmp_path / "labels.npz", labels=np.zeros(3, np.int64))
    np.savez(tmp_path / "float.npz", images=np.zeros((1, 8, 8, 3)))
    suffixes = ".bmp, .gif, .jfif, .jpeg, .jpg, .png, .ppm, .tif, .tiff, .webp"
    cases = [
        (model, [], "files is empty: give image files, folders of them or .npz files"),
        (model, ["none.png"], "{}/none.png: no such file or folder; check the path"),
        (model, ["empty"], f"{{}}/empty: no image in it or below ({suffixes}); check the path"),
        (model, ["bad.png"],
         "{}/bad.png: cannot be decoded (cannot identify image file 'bad.png'); "
         "replace or remove this file"),
        (model, ["labels.npz"],
         "{}/labels.npz: no array 'images' (found: labels); name the arrays 'images' and 'labels', "
         "as pmt.datasets.save_npz does"),
        (model, ["float.npz"],
         "{}/float.npz: images is float64; must be a uint8 array of pixels 0..255, or an int8 or "
         "float32 array of a network's inputs; Dataset.from_arrays(x, y) converts other arrays"),
        (gray, ["last.png"],
         "{}/last.png: has 3 channels, the model takes 1; convert it to gray"),
    ]  # fmt: skip
    for network, places, message in cases:
        with pytest.raises((ValueError, FileNotFoundError)) as raised:
            predict(network, [tmp_path / place for place in places])
        assert str(raised.value) == message.format(tmp_path)
    with pytest.raises(ValueError, match=r"^the model has 4 classes, the data set or list gives 2"):
        predict(model, [tmp_path / "last.png"], class_names=("ant", "bee"))


def test_linked_folders_are_walked_once(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        image.new("L", (8, 8)).save(tmp_path / name / "0.png")
    shown = tmp_path / "shown"
    shown.mkdir()
    (shown / "linked").symlink_to(tmp_path / "a")
    (shown / "again").symlink_to(tmp_path / "a")
    (tmp_path / "a" / "loop").symlink_to(tmp_path / "a")
    assert len(find_files([shown])) == 1
    assert len(find_files([tmp_path])) == 2


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
