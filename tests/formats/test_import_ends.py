"""Ends of networks that files have: functions of logits, identities, channels that come first."""

from __future__ import annotations

from pathlib import Path

import litert_engine
import numpy as np
import pytest
from onnx import TensorProto
from onnx_networks import Network
from tflite_builder import TfliteBuilder

import pmt
from pmt.formats.onnx import float_importer

RNG = np.random.default_rng(0)
SCALE = 1 / 255


def scale_of(*scales: float) -> float:
    return float(np.prod(np.array(scales, np.float32)))


class End:
    """A convolution of 6x5x3 to 4 channels, and what follows it, in a ``.tflite`` file."""

    def __init__(self) -> None:
        self.file = TfliteBuilder()
        self.input = self.file.activation(1, 6, 5, 3, scale=SCALE, zero=-128)
        self.map = self.file.activation(1, 6, 5, 4, scale=0.05, zero=-128)
        options = {"Padding": 0, "StrideH": 1, "StrideW": 1, "FusedActivationFunction": 1}
        weights = self.weights((4, 1, 1, 3), SCALE)
        self.file.op("CONV_2D", [self.input, *weights], [self.map], **options)

    def weights(self, shape: tuple[int, ...], scale: float) -> list[int]:
        values = RNG.integers(-99, 99, shape).astype(np.int8)
        bias = RNG.integers(-99, 99, shape[0]).astype(np.int32)
        return [
            self.file.constant(values, scales=[0.01]),
            self.file.constant(bias, scales=[scale_of(scale, 0.01)]),
        ]

    def sizes(self, *values: int) -> int:
        return self.file.constant(np.array(values, np.int32))

    def dense(self, source: int, inner: int, scale: float = 0.05) -> int:
        out = self.file.activation(1, 3, scale=0.3)
        self.file.op("FULLY_CONNECTED", [source, *self.weights((3, inner), scale)], [out])
        return out

    def save(self, path: Path, last: int) -> Path:
        path.write_bytes(self.file.bytes([self.input], [last]))
        return path


def steps_off(path: Path, images: np.ndarray) -> np.ndarray:
    """How far the logits are from LiteRT's, in steps of the output."""
    model = pmt.load(path, input_mean=0, input_std=255)
    expected = litert_engine.outputs(path.read_bytes(), images, reference=True)
    return np.abs(model.core.logits(images, 1, True) / np.float32(0.3) - expected)


@pytest.fixture
def images() -> np.ndarray:
    pytest.importorskip("ai_edge_litert")
    return RNG.integers(-128, 128, (40, 6, 5, 3)).astype(np.int8)


@pytest.mark.parametrize("kind", ["SOFTMAX", "LOGISTIC", "TANH", "ARG_MAX"])
def test_functions_of_the_logits_are_dropped(tmp_path, kind):
    end = End()
    logits = end.dense(end.map, 120)
    if kind == "ARG_MAX":
        last = end.file.sizes(1)
        end.file.op(kind, [logits, end.sizes(1)], [last])
    else:
        last = end.file.activation(1, 3, scale=1 / 256, zero=-128)
        end.file.op(kind, [logits], [last])
    model = pmt.load(end.save(tmp_path / "net.tflite", last), input_mean=0, input_std=255)
    assert [layer.kind for layer in model.layers] == ["conv2d", "fully_connected"]
    assert model.metadata["dropped_operators"] == [f"op 2 {kind}"]


def test_identities_after_them_are_dropped(tmp_path):
    end = End()
    logits = end.dense(end.map, 120)
    soft, shaped, split = (
        end.file.activation(*shape, scale=1 / 256, zero=-128)
        for shape in ((1, 3), (1, 1, 3), (1, 1, 3))
    )
    end.file.op("SOFTMAX", [logits], [soft])
    end.file.op("RESHAPE", [soft, end.sizes(1, 1, 3)], [shaped])
    end.file.op("SPLIT", [end.sizes(2), shaped], [split])
    model = pmt.load(end.save(tmp_path / "net.tflite", split), input_mean=0, input_std=255)
    assert model.metadata["dropped_operators"] == ["op 2 SOFTMAX", "op 3 RESHAPE", "op 4 SPLIT"]
    assert model.classes == 3


@pytest.mark.parametrize("kind", ["SOFTMAX", "SPLIT"])
def test_an_end_that_reads_nothing_is_refused(tmp_path, kind):
    end = End()
    last = end.file.activation(1, 3, scale=1 / 256, zero=-128)
    end.file.op(kind, [], [last])
    with pytest.raises(ValueError, match=r"net\.tflite"):
        pmt.load(end.save(tmp_path / "net.tflite", last))


def test_the_flattening_of_torch_puts_the_weights_in_order(tmp_path, images):
    end = End()
    first, vector = (
        end.file.activation(*shape, scale=0.05, zero=-128) for shape in ((1, 4, 6, 5), (1, 120))
    )
    end.file.op("TRANSPOSE", [end.map, end.sizes(0, 3, 1, 2)], [first])
    end.file.op("RESHAPE", [first, end.sizes(1, 120)], [vector])
    off = steps_off(end.save(tmp_path / "net.tflite", end.dense(vector, 120)), images)
    assert off.max() <= 1
    assert (off > 0.5).mean() < 0.05


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("at_once", [False, True])
def test_means_over_channels_that_come_first(tmp_path, images, keeps, at_once):
    end = End()
    first = end.file.activation(1, 4, 6, 5, scale=0.05, zero=-128)
    end.file.op("TRANSPOSE", [end.map, end.sizes(0, 3, 1, 2)], [first])
    mean = end.file.activation(*(1, 4, 1, 1) if keeps else (1, 4), scale=0.05, zero=-128)
    if at_once:
        end.file.op("MEAN", [first, end.sizes(2, 3)], [mean], KeepDims=keeps)
    else:
        rows = end.file.activation(*(1, 4, 6, 1) if keeps else (1, 4, 6), scale=0.05, zero=-128)
        end.file.op("MEAN", [first, end.sizes(3)], [rows], KeepDims=keeps)
        end.file.op("MEAN", [rows, end.sizes(2)], [mean], KeepDims=keeps)
    path = end.save(tmp_path / "net.tflite", end.dense(mean, 4))
    model = pmt.load(path, input_mean=0, input_std=255)
    assert [op.kind for op in model.to_graph().ops] == ["conv2d", "mean", "fully_connected"]
    assert steps_off(path, images).max() <= 1.5


def test_other_operators_on_channels_that_come_first_are_refused(tmp_path):
    end = End()
    first, last = (end.file.activation(1, 4, 6, 5, scale=0.05, zero=-128) for _ in range(2))
    end.file.op("TRANSPOSE", [end.map, end.sizes(0, 3, 1, 2)], [first])
    end.file.op("RELU", [first], [last])
    path = end.save(tmp_path / "net.tflite", last)
    with pytest.raises(ValueError, match=r"op 2 RELU: reads values whose channels come first"):
        pmt.load(path)
    end = End()
    first = end.file.activation(1, 4, 6, 5, scale=0.05, zero=-128)
    end.file.op("TRANSPOSE", [end.map, end.sizes(0, 3, 1, 2)], [first])
    with pytest.raises(ValueError, match="its output is a map whose channels come first"):
        pmt.load(end.save(tmp_path / "net.tflite", first))


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
