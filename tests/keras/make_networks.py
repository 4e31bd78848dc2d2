"""Makes the .tflite files beside it with TensorFlow's own converter, so that tests meet its output.

    pip install tensorflow-cpu        # 2.21 made the files
    python tests/keras/make_networks.py

Not needed to run the tests. Weights are random; each network has what its name says.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import keras

FOLDER = Path(__file__).parent
layers = keras.layers


def mobilenet(x: Any) -> Any:
    """Padding before stride 2, RELU6, inverted residual, a 1x1 convolution and softmax."""
    x = layers.ZeroPadding2D(((0, 1), (0, 1)))(x)
    x = layers.BatchNormalization()(layers.Conv2D(8, 3, 2, use_bias=False)(x))
    x = layers.ReLU(6.0)(x)
    x = layers.BatchNormalization()(layers.DepthwiseConv2D(3, 1, "same", use_bias=False)(x))
    x = layers.Conv2D(16, 1)(layers.ReLU(6.0)(x))
    y = layers.ReLU(6.0)(layers.Conv2D(32, 1)(x))
    y = layers.ReLU()(layers.DepthwiseConv2D(5, 1, "same", depth_multiplier=2)(y))
    x = layers.Add()([x, layers.Conv2D(16, 1)(y)])
    x = layers.Conv2D(5, 1)(layers.GlobalAveragePooling2D(keepdims=True)(x))
    return layers.Softmax()(layers.Reshape((5,))(x))


def mixed(x: Any) -> Any:
    """Rescaling, groups, dilation, unfolded normalization, pools, a flattened image."""
    x = layers.Rescaling(2.0, -1.0)(x)
    x = layers.ReLU()(layers.Conv2D(8, 3, padding="same")(x))
    x = layers.ReLU()(layers.Conv2D(16, 3, padding="same", groups=4)(x))
    x = layers.ReLU()(layers.Conv2D(16, 3, padding="same", dilation_rate=2)(x))
    x = layers.DepthwiseConv2D(3, padding="same", dilation_rate=2)(x)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.AveragePooling2D(2)(layers.MaxPooling2D(3, 2, padding="same")(x))
    x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.Flatten()(layers.Conv2D(8, (1, 3), (2, 1))(x))
    return layers.Dense(4)(layers.Dense(12, activation="relu6")(x))


def resnet(x: Any) -> Any:
    """A padded max pool, blocks that begin with normalization, projections, a mean of positions."""
    x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(8, 7, 2, padding="same")(x)))
    x = layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(x))
    for stride in (1, 2):
        y = layers.ReLU()(layers.BatchNormalization()(x))
        y = layers.ReLU()(layers.Conv2D(8, 3, stride, padding="same")(y))
        y = layers.Conv2D(8, 3, padding="same")(y)
        x = layers.ReLU()(layers.Add()([layers.Conv2D(8, 1, stride)(x) if stride > 1 else x, y]))
    return layers.Dense(6)(layers.GlobalAveragePooling1D()(layers.Reshape((-1, 8))(x)))


def positions(x: Any) -> Any:
    """Dense layers of every position, a global maximum."""
    x = layers.Dense(6)(layers.Dense(8, activation="relu")(x))
    return layers.Dense(4, activation="softmax")(layers.GlobalMaxPooling2D()(x))


def signal(x: Any) -> Any:
    """One-dimensional convolutions, one of them causal and dilated."""
    x = layers.MaxPooling1D(2)(layers.Conv1D(8, 5, 2, padding="same", activation="relu")(x))
    x = layers.Conv1D(8, 3, padding="causal", dilation_rate=2)(x)
    return layers.Dense(4)(layers.GlobalAveragePooling1D()(x))


NETWORKS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], Any]] = {
    "mobilenet_uint8": (mobilenet, (24, 24, 3), tf.uint8),
    "mixed": (mixed, (16, 16, 3), tf.int8),
    "resnet_float": (resnet, (20, 20, 3), tf.float32),
    "positions": (positions, (8, 8, 3), tf.int8),
    "signal": (signal, (32, 3), tf.int8),
}


def randomize(model: Any, rng: np.random.Generator) -> None:
    for layer in model.layers:
        stored = layer.get_weights()
        if isinstance(layer, layers.BatchNormalization):
            shape = stored[0].shape
            stored = [
                rng.uniform(0.5, 1.5, shape), rng.normal(0, 0.3, shape),
                rng.normal(0, 0.3, shape), rng.uniform(0.5, 2, shape),
            ]  # fmt: skip
        elif len(stored) > 1:
            stored[-1] = rng.normal(0, 0.2, stored[-1].shape)
        layer.set_weights(stored)


def convert(model: Any, shape: tuple[int, ...], ends: Any, rng: np.random.Generator) -> bytes:
    def calibration() -> Iterator[list[np.ndarray]]:
        for _ in range(20):
            yield [rng.uniform(0, 1, (1, *shape)).astype(np.float32)]

    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = calibration
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = ends
    return bytes(converter.convert())


def main() -> None:
    for seed, (name, (network, shape, ends)) in enumerate(NETWORKS.items()):
        keras.utils.set_random_seed(seed)
        rng = np.random.default_rng(seed)
        image = layers.Input(shape)
        model = keras.Model(image, network(image))
        randomize(model, rng)
        (FOLDER / f"{name}.tflite").write_bytes(convert(model, shape, ends, rng))


if __name__ == "__main__":
    main()
