"""Operators of a network that is refused, as ``pmt info`` lists them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx_networks import Network
from tflite_builder import SAME, TfliteBuilder, ramp, saved

from pmt.cli.program import main
from pmt.formats.operators import OperatorCount, count_operators

pytest.importorskip("onnx")
pytest.importorskip("tflite")


def tflite_file(folder: Path) -> Path:
    b = TfliteBuilder()
    x, y, z = b.activation(1, 8, 8, 2), b.activation(1, 8, 8, 4), b.activation(1, 8, 8, 4)
    wide, out = b.activation(1, 16, 16, 3), b.activation(1, 2)
    window = {"Padding": SAME, "StrideH": 1, "StrideW": 1, "FusedActivationFunction": 0}
    b.op("CONV_2D", [x, b.constant(ramp(4, 3, 3, 2), scales=[1.0])], [y], **window)
    b.op("HARD_SWISH", [y], [z])
    size = b.constant(np.array([1, 16, 16, 3], np.int32))
    b.op("TRANSPOSE_CONV", [size, b.constant(ramp(3, 2, 2, 4), scales=[1.0]), z], [wide])
    b.op("FULLY_CONNECTED", [wide, b.constant(ramp(2, 768), scales=[1.0])], [out])
    return saved(folder, b.bytes([x], [out]))


def test_a_tflite_file(tmp_path: Path) -> None:
    assert count_operators(tflite_file(tmp_path)) == [
        OperatorCount("CONV_2D", 1, 8 * 8 * 4 * 9 * 2),
        OperatorCount("TRANSPOSE_CONV", 1, 8 * 8 * 3 * 4 * 4),
        OperatorCount("FULLY_CONNECTED", 1, 2 * 768),
        OperatorCount("HARD_SWISH", 1, 0),
    ]


def test_an_onnx_file(tmp_path: Path) -> None:
    net = Network()
    x = net.add("HardSwish", [net.conv("x", 3, 4)])
    x = net.add("ConvTranspose", [x, net.weights(4, 2, 2, 2)], strides=[2, 2])
    x = net.add("Flatten", [net.add("GlobalAveragePool", [x])])
    path = net.save(tmp_path / "net.onnx", net.add("MatMul", [x, net.weights(2, 5)]), (1, 3, 8, 8))
    assert count_operators(path) == [
        OperatorCount("Conv", 1, 6 * 6 * 4 * 9 * 3),
        OperatorCount("ConvTranspose", 1, 6 * 6 * 4 * 2 * 4),
        OperatorCount("MatMul", 1, 10),
        OperatorCount("Flatten", 1, 0),
        OperatorCount("GlobalAveragePool", 1, 0),
        OperatorCount("HardSwish", 1, 0),
    ]


def test_shapes_after_an_ill_formed_node_are_unknown(tmp_path: Path) -> None:
    net = Network()
    x = net.add("Add", [net.conv("x", 3, 4), net.add("Concat", [], axis=1)])
    path = net.save(tmp_path / "net.onnx", net.add("HardSwish", [x]), (1, 3, 8, 8))
    found = [(one.kind, one.macs) for one in count_operators(path)]
    assert found == [("Add", 0), ("Concat", 0), ("Conv", 0), ("HardSwish", 0)]


def test_info_lists_them_before_the_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", str(tflite_file(tmp_path))]) == 2
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        "operator         count   MACs",
        "CONV_2D              1  4,608",
        "TRANSPOSE_CONV       1  3,072  missing",
        "FULLY_CONNECTED      1  1,536",
        "HARD_SWISH           1      0  missing",
        "",
        "2 kinds of operators missing, with 3,072 of 9,216 multiply-accumulates",
    ]
    assert "op 1 HARD_SWISH: this operator has no counterpart here" in shown.err


def test_a_refusal_without_missing_operators_is_an_error_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    b = TfliteBuilder()
    x, y = b.activation(1, 4, 4, 2), b.activation(1, 4, 4, 2)
    b.op("ADD", [x, x], [y])
    assert main(["info", str(saved(tmp_path, b.bytes([x], [y])))]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "nothing to train" in shown.err
