"""``pmt.from_keras``: a float network of Keras becomes an int8 model in one call."""

import sys
from typing import Any

import numpy as np
import pytest
from float_networks import check_close
from install_hints import install_hint

import pmt
from pmt.datasets import Dataset

TRAIN = pmt.datasets.bundled("train")[:64]


def test_without_keras(monkeypatch):
    monkeypatch.setitem(sys.modules, "keras", None)
    with pytest.raises(ImportError) as caught:
        pmt.from_keras(object(), TRAIN)
    assert str(caught.value) == f"pmt.from_keras needs the package keras: {install_hint('keras')}"


@pytest.fixture(scope="module")
def keras():
    pytest.importorskip("tensorflow")
    return pytest.importorskip("keras")


def network(keras: Any, channels: int = 1, *, rescales: bool = False) -> Any:
    """A network whose channels, rows and columns all differ, its batch norm as if trained."""
    keras.utils.set_random_seed(0)
    layers = keras.layers
    start = x = keras.Input((28, 28, channels))
    x = layers.Rescaling(1 / 255)(x) if rescales else x
    x = layers.Conv2D(8, (3, 5), 2, padding="same", use_bias=False)(x)
    x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
    x = layers.DepthwiseConv2D(3, use_bias=False)(x)
    x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
    x = layers.Conv2D(12, 1, activation="relu")(x)
    x = layers.Dense(10)(layers.GlobalAveragePooling2D()(x))
    made = keras.Model(start, x, name="net")
    rng = np.random.default_rng(0)
    for layer in made.layers:
        if isinstance(layer, layers.BatchNormalization):
            ranges = ((0.5, 2.0), (-0.5, 0.5), (-0.3, 0.3), (0.5, 2.0))
            layer.set_weights([rng.uniform(*ends, layer.gamma.shape) for ends in ranges])
    return made


def test_predictions_are_those_of_keras(keras, capsys):
    given = network(keras)
    model = pmt.from_keras(given, TRAIN)
    assert capsys.readouterr().out == ""
    assert model.input_shape == (28, 28, 1)
    kinds = [layer.kind for layer in model.layers]
    assert kinds == ["conv2d", "depthwise_conv2d", "conv2d", "fully_connected"]
    expected = given(TRAIN.images / 255).numpy()
    check_close(model.logits(TRAIN.images), expected)
    assert np.mean(model.predict(TRAIN.images) == expected.argmax(axis=1)) >= 0.95
    assert (model.metadata["name"], model.class_names) == ("net", TRAIN.class_names)
    assert model.metadata["source"] == "net of Keras, quantized by pmt.from_keras"


def test_arrays_give_the_same_weights(keras):
    given = network(keras)
    expected = pmt.from_keras(given, TRAIN).logits(TRAIN.images)
    for array in (TRAIN.images, TRAIN.images[..., 0], TRAIN.images / 255):
        model = pmt.from_keras(given, array, name="mine")
        assert (model.metadata["name"], model.class_names) == ("mine", None)
        np.testing.assert_array_equal(model.logits(TRAIN.images), expected)


def test_the_formula_of_pixels(keras):
    colored = np.repeat(TRAIN.images, 3, axis=3)
    colored[..., 1] //= 2
    mean, std = (120.0, 100.0, 80.0), (60.0, 50.0, 40.0)
    given = network(keras, 3)
    model = pmt.from_keras(given, colored, input_mean=mean, input_std=std)
    check_close(model.logits(colored), given((colored - np.array(mean)) / std))
    rescales = network(keras, 3, rescales=True)
    check_close(pmt.from_keras(rescales, colored, input_std=1.0).logits(colored), rescales(colored))


def test_windows_and_a_softmax(keras):
    layers, windows = keras.layers, np.random.default_rng(0).normal(size=(32, 40, 3))
    start = keras.Input((40, 3))
    x = layers.GlobalAveragePooling1D()(layers.Conv1D(6, 5, activation="relu")(start))
    logits = layers.Dense(2)(x)
    given = keras.Model(start, layers.Softmax()(logits))
    model = pmt.from_keras(given, windows.astype(np.float32), features=True)
    assert model.input_shape == (1, 40, 3)
    found = model.logits(windows.astype(np.float32))
    check_close(found, keras.Model(start, logits)(windows))
    with pytest.raises(TypeError, match=r"^images are uint8 pixels, but the model was quantized"):
        model.predict(windows.astype(np.uint8))


def test_refused(keras):
    layers = keras.layers
    free = keras.Sequential([keras.Input((None, None, 1)), layers.GlobalAveragePooling2D()])
    elu = keras.Sequential(
        [keras.Input((28, 28, 1)), layers.Conv2D(4, 3, activation="elu")], name="elu"
    )
    lstm = keras.Sequential([keras.Input((28, 28)), layers.LSTM(4)], name="lstm")
    floats = Dataset.from_arrays(TRAIN.images / 255, TRAIN.labels)
    for model, given, error, message in (
        ("a.keras", TRAIN, TypeError, "model is 'a.keras': must be a keras.Model; keras.saving.lo"),
        (network(keras), "photos", TypeError, "calibration is 'photos': must be a pmt.datasets.D"),
        (network(keras), TRAIN[:7], ValueError, "calibration has 7 inputs: must have 8 or more"),
        (network(keras), TRAIN.images[:0], ValueError, "calibration is empty: give some hundred"),
        (network(keras, 3), TRAIN, ValueError, "calibration has inputs of 28x28x1 (height, width, "
         "channels), and the network reads 28x28x3; give such inputs"),
        (free, TRAIN, ValueError, f"model: {free.name} has the input shape (None, None, None, 1): "
         "must be one input of a fixed size; build it with keras.Input(shape)"),
        (elu, TRAIN, ValueError, "model elu: 2 things are not supported: op 1 DEQUANTIZE: "),
        (lstm, TRAIN, ValueError, "model: TensorFlow's converter refuses lstm (ConverterError, see "
         "above); docs/guides/importers.md lists what a network may hold"),
    ):  # fmt: skip
        with pytest.raises(error) as caught:
            pmt.from_keras(model, given)
        assert str(caught.value).startswith(message)
    with pytest.raises(ValueError, match=r"^input_std: calibration holds inputs that are"):
        pmt.from_keras(network(keras), floats, input_std=60.0)
    with pytest.raises(
        ValueError, match=r"^input_mean=1e\+300 and input_std=255.0 make inputs that"
    ):
        pmt.from_keras(network(keras), TRAIN, input_mean=1e300)
