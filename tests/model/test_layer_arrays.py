"""A layer's arrays are copies that cannot be written to; new ones are checked and set."""

import copy
import pickle

import numpy as np
import pytest
from cli_files import same_weights
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import pixels, residual_network


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
