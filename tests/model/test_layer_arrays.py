"""Copies of a layer's arrays, new ones that are checked and set, and a new last layer."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from cli_files import same_weights
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import pixels, residual_network

import pmt
from pmt.cli import main
from pmt.datasets import Dataset
from pmt.net.graph import with_new_head


def test_arrays_have_the_layers_shapes():
    model = residual_network()
    shapes = {layer.name: model.weights(layer.name).shape for layer in model.layers}
    assert shapes == {
        "stem": (8, 3, 3, 3),
        "expand": (16, 1, 1, 8),
        "depth": (3, 3, 16),
        "project": (8, 1, 1, 16),
        "down": (8, 3, 3, 8),
        "head": (4, 8),
    }
    assert (model.weights("head").dtype, model.bias("head").dtype) == (np.int8, np.int32)
    assert (model.weight_scales("head").dtype, model.bias("head").shape) == (np.float32, (4,))
    np.testing.assert_array_equal(model.weights("head"), model.weights(7))
    np.testing.assert_array_equal(model.weights(np.int64(7)), model.weights(7))


@pytest.mark.parametrize("name", ["weights", "bias", "weight_scales"])
def test_arrays_cannot_be_written_to(name):
    array = getattr(residual_network(), name)("head")
    with pytest.raises(ValueError, match=r"^assignment destination is read-only$"):
        array[0] = 0


def test_new_weights_change_the_model_and_not_what_was_read_before():
    model = residual_network()
    before, bias, logits = model.weights("head"), model.bias("head"), model.logits(pixels(model, 2))
    weights = before.copy()
    weights[0] = 100
    model.set_weights("head", weights)
    weights[1] = -100  # the model has its own copy
    np.testing.assert_array_equal(model.weights("head")[0], 100)
    np.testing.assert_array_equal(model.weights("head")[1:], before[1:])
    np.testing.assert_array_equal(model.bias("head"), bias)
    assert (model.logits(pixels(model, 2))[:, 0] != logits[:, 0]).all()
    np.testing.assert_array_equal(model.logits(pixels(model, 2))[:, 1:], logits[:, 1:])
    assert before[0, 0] != 100


def test_new_biases_are_set_beside_weights():
    model = residual_network()
    model.set_weights("head", model.weights("head"), bias=np.arange(4, dtype=np.int32))
    assert model.bias("head").tolist() == [0, 1, 2, 3]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 99), transposed=st.booleans())
def test_what_is_set_is_read(seed, transposed):
    model = residual_network()
    weights = np.random.default_rng(seed).integers(-127, 128, (4, 8)).astype(np.int8)
    if transposed:
        weights = np.asfortranarray(weights)
    model.set_weights(7, weights)
    np.testing.assert_array_equal(model.weights(7), weights)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (
            "nose",
            "layer='nose' is not a layer with weights; model.layers lists their names and indices",
        ),
        ("B1", "layer='B1' is a block; give one of its layers: stem, expand"),
        (4, "layer=4 is not a layer with weights; model.layers lists their names and indices"),
        (
            True,
            "layer=True is not a layer with weights; model.layers lists their names and indices",
        ),
    ],
)
def test_unknown_layers_are_refused(layer, message):
    with pytest.raises(ValueError, match=r"^layer=") as raised:
        residual_network().weights(layer)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("weights", "bias", "message"),
    [
        (np.zeros((4, 8)), None,
         "weights is float64: must be a NumPy array of int8; round and clip it first"),
        ([[0] * 8] * 4, None,
         "weights is list: must be a NumPy array of int8; round and clip it first"),
        (np.zeros((8, 4), np.int8), None,
         "weights has shape (8, 4): layer 'head' has weights of shape (4, 8)"),
        (np.zeros((4, 8), np.int8), np.zeros(4, np.int64),
         "bias is int64: must be a NumPy array of int32; round and clip it first"),
        (np.zeros((4, 8), np.int8), np.zeros(8, np.int32),
         "bias has shape (8,): layer 'head' has bias of shape (4,)"),
        (np.full((4, 8), -128, np.int8), None,
         "weights of layer 'head' holds -128: they are symmetric, -127 to 127; clip them by "
         "numpy.clip(weights, -127, 127)"),
    ],
)  # fmt: skip
def test_wrong_arrays_are_refused_and_nothing_changes(weights, bias, message):
    model = residual_network()
    start = model.image()
    with pytest.raises((TypeError, ValueError)) as raised:
        model.set_weights("head", weights, bias=bias)
    assert str(raised.value) == message
    assert model.image() == start


@pytest.mark.parametrize(
    "copied",
    [
        copy.copy,
        copy.deepcopy,
        lambda model: model.copy(),
        lambda model: pickle.loads(pickle.dumps(model)),
        lambda model: copy.deepcopy({"model": model})["model"],
    ],
)
def test_copies_are_independent(copied):
    model = residual_network()
    model.set_weights("head", np.full((4, 8), 7, np.int8))
    start = model.image()
    other = copied(model)
    assert other.image() == start
    other.set_weights("head", np.zeros((4, 8), np.int8))
    assert model.image() == start
    assert not same_weights(model, other)


NAMES = ("sandal", "sneaker", "ankle boot")


@pytest.fixture(scope="module")
def shoes():
    """Three classes of the bundled images, under other names and numbers."""
    clothing = pmt.datasets.bundled("train")
    some = clothing[np.isin(clothing.labels, (5, 7, 9))]
    labels = np.searchsorted((5, 7, 9), some.labels)
    return Dataset.from_arrays(some.images, labels, class_names=NAMES, name="shoes")


def test_the_last_layer_is_new_and_the_others_stay():
    old, new = pmt.load("fashion_mnist_dscnn"), pmt.load("fashion_mnist_dscnn", classes=3)
    assert (new.classes, new.class_names) == (3, None)
    assert not new.weights("head").any()
    assert not new.bias("head").any()
    for layer in old.layers[:-1]:
        assert np.array_equal(new.weights(layer.name), old.weights(layer.name))
    assert new.blocks == old.blocks
    scales = {head.weight_scales.tobytes() for head in (new.to_graph().ops[-1],)}
    median = np.float32(np.median(old.to_graph().ops[-1].weight_scales))
    assert scales == {np.full(3, median, np.float32).tobytes()}
    assert new.logits(pmt.datasets.bundled("test").images[:2]).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_training_gives_it_the_names_of_the_data(shoes):
    model = pmt.load("fashion_mnist_dscnn", classes=3)
    result = pmt.ZOTrainer(layers="head", epochs=1).fit(model, shoes, progress=False)
    assert model.class_names == NAMES
    assert result.phases[0]["held_out_loss"] == pytest.approx(np.log(3), abs=1e-4)
    assert model.evaluate(shoes).accuracy > 0.9


@pytest.mark.parametrize("name", ["cifar10_small", "cifar10_mcunet"])
def test_statistics_of_clean_images_stay(name):
    from pmt.train.prepare.clean_statistics import stored_statistics

    old, new = pmt.load(name), pmt.load(name, classes=4)
    assert list(stored_statistics(new).channels) == list(stored_statistics(old).channels)


def test_files_of_every_kind(tmp_path, resnet8_path, mcunet_path):
    pmt.load("fashion_mnist_dscnn").save(tmp_path / "net.pmt")
    for path in (tmp_path / "net.pmt", resnet8_path, mcunet_path):
        assert pmt.load(path, classes=7).classes == 7


@pytest.mark.parametrize(
    ("classes", "error", "message"),
    [
        (0, ValueError, r"^classes 0: must be 1\.\.65536$"),
        (2.5, TypeError, r"^classes=2\.5 must be an integer$"),
    ],
)
def test_a_number_out_of_range(classes, error, message):
    with pytest.raises(error, match=message):
        pmt.load("fashion_mnist_dscnn", classes=classes)


def test_features_have_no_classes_to_replace(tmp_path):
    pmt.load("fashion_mnist_dscnn").features().save(tmp_path / "features.pmt")
    with pytest.raises(ValueError, match=r"^classes 3: the network does not end in a layer that"):
        pmt.load(tmp_path / "features.pmt", classes=3)


def test_from_a_shell(tmp_path, shoes, capsys):
    pmt.datasets.save_npz(shoes, tmp_path / "shoes.npz")
    command = ["train", "fashion_mnist_dscnn", "--classes", "3", "--layers", "head"]
    data = ["--data", str(tmp_path / "shoes.npz"), "--epochs", "1", "--out", str(tmp_path / "run")]
    assert main([*command, *data]) == 0
    assert capsys.readouterr().err == ""
    assert pmt.load(tmp_path / "run").class_names == NAMES


def test_a_new_head_has_no_activation():
    graph = pmt.load("fashion_mnist_dscnn").to_graph()
    graph.tensors[graph.output] = replace(graph.tensors[graph.output], scale=0.25, zero_point=-128)
    graph.ops[-1].clamp = (-128, 60)
    new = with_new_head(graph, 3)
    assert (new.tensors[new.output].scale, new.tensors[new.output].zero_point) == (0.5, 0)
    assert new.ops[-1].clamp == (-128, 127)
