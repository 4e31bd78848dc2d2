"""Ends of networks that files have: functions of logits, identities, channels that come first."""

from pathlib import Path

import litert_engine
import numpy as np
import pytest
from onnx import TensorProto
from onnx_networks import Network
from tflite_networks import RELU, NetworkBuilder, Value

import pmt
from pmt.formats.onnx import float_importer


class End(NetworkBuilder):
    """A convolution of 6x5x3 to 4 channels, and what follows it, in a ``.tflite`` file."""

    def __init__(self) -> None:
        super().__init__()
        self.input = self.image(6, 5, 3)
        self.map = self.conv(self.input, 4, 1, activation=RELU)

    def channels_first(self) -> Value:
        return self.renamed("TRANSPOSE", self.map, (1, 4, 6, 5), self.integers(0, 3, 1, 2))

    def function(self, kind: str, x: Value) -> Value:
        """SOFTMAX and its kin."""
        index = self.file.activation(*x.shape, scale=1 / 256, zero=-128)
        self.file.op(kind, [x.index], [index])
        return Value(index, x.shape, 1 / 256, -128, 1.0)

    def load(self, path: Path, last: Value | int) -> pmt.Model:
        index = last if isinstance(last, int) else last.index
        path.write_bytes(self.file.bytes([self.input.index], [index]))
        return pmt.load(path, input_mean=0, input_std=255)


def steps_off(end: End, path: Path, last: Value) -> np.ndarray:
    """How far the logits are from LiteRT's, in steps of the output."""
    pytest.importorskip("ai_edge_litert")
    images = np.random.default_rng(0).integers(-128, 128, (40, 6, 5, 3)).astype(np.int8)
    model = end.load(path, last)
    expected = litert_engine.outputs(path.read_bytes(), images, reference=True)
    steps = model.core.logits(images, 1, True) / np.float32(last.scale) + last.zero
    return np.abs(steps - expected)


@pytest.mark.parametrize("kind", ["SOFTMAX", "LOGISTIC", "TANH", "ARG_MAX"])
def test_functions_of_the_logits_are_dropped(tmp_path, kind):
    end = End()
    logits = end.dense(end.map, 3)
    if kind == "ARG_MAX":
        last = end.integers(1)
        end.file.op(kind, [logits.index, end.integers(1)], [last])
    else:
        last = end.function(kind, logits)
    model = end.load(tmp_path / "net.tflite", last)
    assert [layer.kind for layer in model.layers] == ["conv2d", "fully_connected"]
    assert model.metadata["dropped_operators"] == [f"op 2 {kind}"]


def test_identities_after_them_are_dropped(tmp_path):
    end = End()
    shaped = end.reshape(end.function("SOFTMAX", end.dense(end.map, 3)), 1, 1, 3)
    split = end.like(shaped, 1, 1, 3)
    end.file.op("SPLIT", [end.integers(2), shaped.index], [split.index])
    model = end.load(tmp_path / "net.tflite", split)
    assert model.metadata["dropped_operators"] == ["op 2 SOFTMAX", "op 3 RESHAPE", "op 4 SPLIT"]
    assert model.classes == 3


@pytest.mark.parametrize("kind", ["SOFTMAX", "SPLIT"])
def test_an_end_that_reads_nothing_is_refused(tmp_path, kind):
    end = End()
    last = end.like(end.map, 1, 3)
    end.file.op(kind, [], [last.index])
    with pytest.raises(ValueError, match=r"net\.tflite"):
        end.load(tmp_path / "net.tflite", last)


def test_the_flattening_of_torch_puts_the_weights_in_order(tmp_path):
    end = End()
    logits = end.dense(end.reshape(end.channels_first(), 1, 120), 3)
    off = steps_off(end, tmp_path / "net.tflite", logits)
    assert off.max() <= 1
    assert (off > 0.5).mean() < 0.05


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("at_once", [False, True])
def test_means_over_channels_that_come_first(tmp_path, keeps, at_once):
    end = End()
    mean = end.channels_first()
    for axes in ([2, 3],) if at_once else ([3], [2]):
        sizes = [1 if axis in axes else n for axis, n in enumerate(mean.shape)]
        shape = sizes if keeps else [n for axis, n in enumerate(sizes) if axis not in axes]
        mean = end.renamed("MEAN", mean, tuple(shape), end.integers(*axes), KeepDims=keeps)
    path, logits = tmp_path / "net.tflite", end.dense(mean, 3)
    kinds = [op.kind for op in end.load(path, logits).to_graph().ops]
    assert kinds == ["conv2d", "mean", "fully_connected"]
    # LiteRT rounds between two means, which the logits see as a step more.
    assert steps_off(end, path, logits).max() <= (1.5 if at_once else 2.5)


def test_other_operators_on_channels_that_come_first_are_refused(tmp_path):
    end = End()
    relu = end.activate("RELU", end.channels_first())
    with pytest.raises(ValueError, match=r"op 2 RELU: reads values whose channels come first"):
        end.load(tmp_path / "net.tflite", relu)
    end = End()
    with pytest.raises(ValueError, match="its output is a map whose channels come first"):
        end.load(tmp_path / "net.tflite", end.channels_first())


def float_network(path: Path, *kinds: str, axis: int = 1) -> Path:
    """Write a float ONNX network whose logits go through such operators."""
    net = Network()
    x = net.add("GlobalAveragePool", [net.add("Relu", [net.conv("x", 3, 4)])])
    x = net.head(x, 4, classes=2)
    attributes = {"ArgMax": {"axis": axis}, "Cast": {"to": TensorProto.INT64}}
    for kind in kinds:
        x = net.add(kind, [x], **attributes.get(kind, {}))
    return net.save(path, x, (1, 3, 8, 8))


@pytest.mark.parametrize(
    "kinds",
    [
        *(["Sigmoid"], ["HardSigmoid"], ["Tanh"], ["Softmax", "ArgMax"], ["Sigmoid", "Identity"]),
        *(["ArgMax", "Squeeze"], ["Sigmoid", "Flatten"], ["ArgMax", "Squeeze", "Cast"]),
    ],
)
def test_functions_of_the_logits_are_dropped_of_onnx(tmp_path, kinds):
    graph = float_importer.read(float_network(tmp_path / "net.onnx", *kinds))
    assert [op.kind for op in graph.ops] == ["conv2d", "mean", "fully_connected"]
    renaming = ("Identity", "Squeeze", "Flatten", "Cast")
    assert len(graph.metadata["dropped_operators"]) == len([k for k in kinds if k not in renaming])


def test_the_clamp_of_a_hard_sigmoid_stays(tmp_path):
    graph = float_importer.read(float_network(tmp_path / "net.onnx", "HardSigmoid"))
    assert graph.ops[-1].activation == (-2.5, 2.5)
    falling = Network()
    x = falling.head(falling.add("GlobalAveragePool", [falling.conv("x", 3, 4)]), 4, classes=2)
    x = falling.add("HardSigmoid", [x], alpha=-0.2)
    with pytest.raises(ValueError, match=r"its alpha is -0.2.*only a rising HardSigmoid"):
        float_importer.read(falling.save(tmp_path / "falling.onnx", x, (1, 3, 8, 8)))


def test_a_sigmoid_that_is_computed_with_is_refused(tmp_path):
    path = float_network(tmp_path / "net.onnx", "Sigmoid", "Relu")
    with pytest.raises(ValueError, match=r"Sigmoid.*not supported: train the network with ReLU"):
        float_importer.read(path)


def test_an_argmax_over_another_axis_is_refused(tmp_path):
    path = float_network(tmp_path / "net.onnx", "ArgMax", axis=0)
    with pytest.raises(ValueError, match=r"it runs over axis 0 of a value of shape \(1, 2\)"):
        float_importer.read(path)
