"""ONNX inputs that are no images: vectors, windows of a length, and more than four channels."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_networks import Network, quantized_statically, run

import pmt
from pmt.formats.onnx import float_importer
from pmt.quantization import float_activations
from pmt.quantization.quantized_model import quantize

Builder = Callable[[Network], str]


def conv1d(net: Network, x: str, channels: int, out: int, side: int, **attributes: Any) -> str:
    group = attributes.pop("group", 1)
    inputs = [x, net.weights(out, channels // group, side), net.weights(out)]
    return net.add("Conv", inputs, group=group, **attributes)


def vector(net: Network) -> str:
    x = net.add("Relu", [net.batch_norm(net.add("MatMul", ["x", net.weights(12, 9)]), 9)])
    return net.add("Gemm", [x, net.weights(9, 4), net.weights(4)])


def windows(net: Network) -> str:
    x = net.add("Relu", [net.batch_norm(conv1d(net, "x", 6, 8, 5, strides=[2], pads=[2, 1]), 8)])
    x = net.add("MaxPool", [x], kernel_shape=[2], strides=[2])
    x = conv1d(net, x, 8, 8, 3, group=8, dilations=[2])
    return net.head(net.add("GlobalAveragePool", [x]), 8)


def all_windows(net: Network) -> str:
    pads = net.constant([0, 0, 1, 0, 0, 2], np.int64)
    x = net.add("Relu", [conv1d(net, net.add("Pad", ["x", pads]), 6, 8, 3, auto_pad="SAME_UPPER")])
    x = net.add("AveragePool", [x], kernel_shape=[3], strides=[2], pads=[1, 1], count_include_pad=1)
    return net.head(net.add("GlobalMaxPool", [x]), 8)


def limited_windows(net: Network) -> str:
    x = net.add("Dropout", [net.add("Max", ["x", net.constant(-0.5)])])
    return net.head(net.add("GlobalAveragePool", [conv1d(net, x, 6, 8, 3)]), 8)


def normalized_windows(net: Network) -> str:
    return net.head(net.add("Relu", [net.batch_norm("x", 6)]), 6 * 40)


def padded_axis(net: Network) -> str:
    net.opset = 18
    pads, axes = net.constant([2, 1], np.int64), net.constant([-1], np.int64)
    return net.head(conv1d(net, net.add("Pad", ["x", pads, "", axes]), 6, 2, 3), 2 * 41)


def flattened_window(net: Network) -> str:
    return net.head("x", 6 * 40)


def time_first(net: Network) -> str:
    x = net.add("Relu", [conv1d(net, net.add("Transpose", ["x"], perm=[0, 2, 1]), 6, 8, 4)])
    x = net.add("ReduceMean", [x], axes=[2], keepdims=0)
    return net.add("MatMul", [x, net.weights(8, 3)])


def dense_over_time(net: Network) -> str:
    x = net.add(
        "Relu", [net.add("Add", [net.add("MatMul", ["x", net.weights(6, 8)]), net.weights(8)])]
    )
    return net.add("MatMul", [net.add("ReduceMean", [x], axes=[1], keepdims=0), net.weights(8, 3)])


def as_image(axis: int, channels: int, side: tuple[int, int], classes: int) -> Builder:
    def build(net: Network) -> str:
        x = net.add("Unsqueeze", ["x", net.constant([axis], np.int64)])
        inputs = [x, net.weights(classes, channels, *side), net.weights(classes)]
        return net.add("Flatten", [net.add("GlobalAveragePool", [net.add("Conv", inputs)])])

    return build


def vector_as_window(net: Network) -> str:
    x = net.add("Unsqueeze", ["x", net.constant([1], np.int64)])
    return net.add("GlobalAveragePool", [conv1d(net, x, 1, 4, 3)])


def vector_as_image(net: Network) -> str:
    x = net.add("Reshape", ["x", net.constant([-1, 1, 3, 4], np.int64)])
    return net.head(net.conv(x, 1, 3, 2), 3 * 6)


def many_channels(net: Network) -> str:
    return net.head(net.add("Relu", [net.conv("x", 6, 4, 3)]), 4 * 6)


def channels_last(net: Network) -> str:
    x = net.add("Transpose", ["x"], perm=[0, 3, 1, 2])
    return net.head(net.add("GlobalAveragePool", [net.conv(x, 6, 4, 3)]), 4)


# Each with the file's input, and the order of its axes as they are stored here.
NETWORKS: dict[str, tuple[Builder, tuple[int, ...], str]] = {
    "vector": (vector, (12,), "NC"),
    "windows": (windows, (6, 40), "NCW"),
    "all windows": (all_windows, (6, 40), "NCW"),
    "limited windows": (limited_windows, (6, 40), "NCW"),
    "normalized windows": (normalized_windows, (6, 40), "NCW"),
    "padded axis": (padded_axis, (6, 40), "NCW"),
    "flattened window": (flattened_window, (6, 40), "NWC"),
    "time first": (time_first, (40, 6), "NWC"),
    "dense over time": (dense_over_time, (40, 6), "NWC"),
    "window as an image of height 1": (as_image(2, 6, (1, 5), 3), (6, 40), "NCW"),
    "window as an image of width 1": (as_image(-1, 6, (5, 1), 3), (6, 40), "NCW"),
    "spectrogram without channels": (as_image(1, 1, (3, 5), 3), (6, 40), "NHW"),
    "vector as a window": (vector_as_window, (12,), "NW"),
    "vector as an image": (vector_as_image, (12,), "NC"),
    "many channels": (many_channels, (6, 4, 5), "NCHW"),
    "channels last": (channels_last, (4, 5, 6), "NHWC"),
}


def stored(inputs: np.ndarray, order: str, shape: tuple[int, int, int]) -> np.ndarray:
    """The file's inputs as (N, height, width, channels)."""
    axes = [order.index(letter) for letter in "NHWC" if letter in order]
    return np.ascontiguousarray(inputs.transpose(axes)).reshape(len(inputs), *shape)


def drawn(name: str, folder: Path) -> tuple[Path, np.ndarray, str]:
    build, shape, order = NETWORKS[name]
    net = Network()
    path = net.save(folder / "net.onnx", build(net), (1, *shape))
    inputs = np.random.default_rng(5).normal(size=(60, *shape)).astype(np.float32)
    return path, inputs, order


@pytest.mark.parametrize("name", NETWORKS)
def test_float_networks(name, tmp_path):
    path, inputs, order = drawn(name, tmp_path)
    graph = float_importer.read(path)
    ready = stored(inputs, order, graph.tensors[0].shape)
    found = float_activations(graph, ready)[graph.output].reshape(len(inputs), -1)
    expected = run(path, inputs).reshape(len(inputs), -1)
    np.testing.assert_allclose(found, expected, atol=1e-4, rtol=1e-4)


def test_an_order_that_is_given_is_taken(tmp_path):
    path, inputs, _ = drawn("flattened window", tmp_path)
    graph = float_importer.read(path, order="NCW")
    assert graph.tensors[0].shape == (1, 40, 6)
    ready = stored(inputs, "NCW", (1, 40, 6))
    found = float_activations(graph, ready)[graph.output].reshape(len(inputs), -1)
    np.testing.assert_allclose(found, run(path, inputs), atol=1e-4, rtol=1e-4)
    with pytest.raises(ValueError, match=r"^order='NCWH' is unknown; did you mean 'NCW'\?$"):
        float_importer.read(path, order="NCWH")
    with pytest.raises(
        ValueError, match=r"the input 'x' has shape \(1, 6, 40\): order='NHWC' is of other axes"
    ):
        float_importer.read(path, order="NHWC")


@pytest.mark.parametrize("name", NETWORKS)
def test_they_are_quantized_and_classify_alike(name, tmp_path):
    path, inputs, order = drawn(name, tmp_path)
    shape = float_importer.read(path).tensors[0].shape
    labels = np.arange(len(inputs)) % 3
    data = pmt.datasets.Dataset.from_arrays(stored(inputs, order, shape), labels)
    pmt.datasets.save_npz(data, tmp_path / "inputs.npz")
    model = quantize(str(path), calibrate=str(tmp_path / "inputs.npz")).model
    expected = run(path, inputs).reshape(len(inputs), -1)
    found = model.core.logits(model.prepare(data.images)).reshape(expected.shape)
    assert np.mean(found.argmax(1) == expected.argmax(1)) >= 0.95
    assert np.abs(found - expected).max() <= 0.05 * np.abs(expected).max()


@pytest.mark.parametrize("activations", ["QInt8", "QUInt8"])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_onnx_runtimes_quantizer(name, activations, tmp_path):
    path, inputs, order = drawn(name, tmp_path)
    batches = np.split(inputs, len(inputs))
    quantized = quantized_statically(path, batches, activations, per_channel=True)
    graph = pmt.formats.read(quantized)
    model = pmt.Model.from_graph(graph)
    ready = stored(inputs, order, graph.tensors[0].shape)
    found = model.core.logits(model.prepare(ready))
    expected = run(quantized, inputs).reshape(found.shape)
    # In steps of the output: sums of float engines, and averages that they round twice, differ.
    steps = np.abs(found - expected) / graph.tensors[graph.output].scale
    assert steps.max() < 2.5
    assert np.mean(steps < 0.5) > 0.9


def test_means_are_for_pixels(tmp_path):
    path, _, _ = drawn("many channels", tmp_path)
    with pytest.raises(
        ValueError, match=r"input_mean=0\.5: the network reads 6 channels, more than the 4"
    ):
        float_importer.read(path, input_mean=0.5)
