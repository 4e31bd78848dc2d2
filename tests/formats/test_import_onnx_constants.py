"""Nodes that read constants alone: results that do not exist, and the first cause of a refusal."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx_networks import Network

from pmt.formats.onnx import float_importer as onnx_float
from pmt.formats.onnx import importer as onnx_qdq

LOWEST = -(2**31)
INTEGERS = {"int32": np.int32, "int64": np.int64, "uint8": np.uint8}


def added(net: Network, constant: str) -> str:
    """A network that adds a constant, cast to float, to its logits."""
    x = net.head(net.conv("x", 3, 4), 4 * 36)
    return net.add("Add", [x, net.add("Cast", [constant], to=1)])


def problems(tmp_path: Path, build: Callable[[Network], str], opset: int = 17) -> list[str]:
    net = Network(opset=opset)
    path = net.save(tmp_path / "net.onnx", added(net, build(net)))
    with pytest.raises(ValueError, match=r"^net\.onnx: .* not supported:") as caught:
        onnx_float.read(path)
    return str(caught.value).splitlines()[1:]


@pytest.mark.parametrize(
    ("kind", "dtype", "values", "divisors", "found"),
    [
        ("Div", "int64", [4, 7], [2, 0], "7 by 0"),
        ("Div", "uint8", [4], [0], "4 by 0"),
        ("Mod", "int64", [5], [0], "5 by 0"),
        ("Div", "int32", [1, LOWEST], [-1], f"{LOWEST} by -1"),
        ("Mod", "int32", [LOWEST], [-1], f"{LOWEST} by -1"),
    ],
)
def test_quotients_that_no_integer_holds(kind, dtype, values, divisors, found, tmp_path):
    def build(net: Network) -> str:
        return net.add(kind, [net.constant(part, INTEGERS[dtype]) for part in (values, divisors)])

    assert problems(tmp_path, build) == [
        f"- node 'n0' ({kind}): it divides {found}, of which {dtype} holds no result: fold "
        "constants before the export"
    ]


def test_whole_quotients_are_cut(tmp_path):
    net = Network()
    parts = [net.constant([7, -7, LOWEST, 8], np.int32), net.constant([2, 2, 2, -1], np.int32)]
    path = net.save(tmp_path / "net.onnx", added(net, net.add("Div", parts)))
    layer = onnx_float.read(path).ops[-1]
    net = Network()
    plain = onnx_float.read(net.save(path, net.head(net.conv("x", 3, 4), 4 * 36))).ops[-1]
    np.testing.assert_allclose(layer.bias - plain.bias, [3, -3, LOWEST // 2, -8], rtol=1e-6)


def in_training(net: Network, x: str) -> str:
    return net.add("Dropout", [x, net.constant(0.5), net.constant(np.array(True))])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_types_that_are_computed(dtype, tmp_path):
    net = Network()
    factors = [net.constant([2, 4, -6, 8], dtype), net.constant([2, 2, 2, 4], dtype)]
    path = net.save(tmp_path / "net.onnx", added(net, net.add("Mul", factors)))
    found = onnx_float.read(path).ops[-1].bias
    net = Network()
    plain = onnx_float.read(net.save(path, net.head(net.conv("x", 3, 4), 4 * 36))).ops[-1].bias
    np.testing.assert_allclose(found - plain, [4, 8, -12, 32], rtol=1e-5)


def test_a_dropout_of_constants_in_training(tmp_path):
    (found,) = problems(tmp_path, lambda net: in_training(net, net.constant([1.0, 2.0])))
    assert found == (
        "- node 'n0' (Dropout): it is in training mode: call model.eval() before the export; "
        "functions of torch need training=self.training"
    )


def test_a_dropout_of_quantized_weights_in_training(tmp_path):
    net = Network()
    values = net.constant(np.ones((4, 3, 1, 1)), np.int8)
    weights = in_training(net, net.add("DequantizeLinear", [values, net.constant(0.05)]))
    x = net.quantized(net.add("Conv", [net.quantized("x", 0.05, 3), weights]), 0.1, 0)
    path = net.save(tmp_path / "net.onnx", x)
    with pytest.raises(ValueError, match=r"\(Dropout\): it is in training mode"):
        onnx_qdq.read(path)


@pytest.mark.parametrize(
    ("opset", "sizes", "outputs", "attributes"),
    [
        (17, [1, 1], 2, {}),
        (17, [2, 3], 2, {}),
        (17, [5, -1], 2, {}),
        (17, [4, 0], 2, {}),
        (17, [4], 2, {}),
        (17, None, 3, {}),
        (13, None, 2, {"axis": 1}),
        (11, None, 2, {"split": [1, 2]}),
        (18, None, 4, {"num_outputs": 4, "axis": -1}),
    ],
)
def test_parts_that_are_not_the_whole(opset, sizes, outputs, attributes, tmp_path):
    def build(net: Network) -> str:
        values = np.ones((1, 5)) if "axis" in attributes else np.ones(4)
        whole = net.constant(values)
        x = net.add("Split", [whole, *([net.constant(sizes, np.int64)] if sizes else [])],
                    **attributes)  # fmt: skip
        net.nodes[-1].output.extend(f"more{i}" for i in range(outputs - 1))
        return x

    (found,) = problems(tmp_path, build, opset)
    assert found.startswith(f"- node 'n0' (Split): its {outputs} outputs have the sizes [")
    assert found.endswith("and they must sum to the axis: the file is damaged, export again")


def test_parts_of_another_number(tmp_path):
    def build(net: Network) -> str:
        return net.add("Split", [net.constant([1.0, 2.0])], num_outputs=2)

    (found,) = problems(tmp_path, build, 18)
    assert "(Split): it has 1 output, and num_outputs is 2: the file is damaged" in found


@pytest.mark.parametrize(("opset", "count"), [(17, 2), (18, 3)])
def test_parts_of_sizes_that_are_not_given(opset, count, tmp_path):
    net = Network(opset=opset)
    whole = net.constant(np.arange(4 if opset == 17 else 5, dtype=np.float32))
    first = net.add("Split", [whole], **({"num_outputs": count} if opset == 18 else {}))
    net.nodes[-1].output.extend(f"more{i}" for i in range(count - 1))
    both = net.add("Concat", [first, first], axis=0)
    path = net.save(tmp_path / "net.onnx", added(net, both))
    assert onnx_float.read(path).ops[-1].bias is not None


def test_types_that_an_operator_does_not_take(tmp_path):
    def build(net: Network) -> str:
        root = net.add("Sqrt", [net.constant([4, 9], np.int64)])
        both = net.add("Mul", [net.constant([1, 2], np.int64), net.constant([1.0])])
        return net.add("Add", [root, both])

    assert problems(tmp_path, build) == [
        "- node 'n0' (Sqrt): its input 0 (X) is int64, which Sqrt does not take: the file is "
        "damaged, export again",
        "- node 'n1' (Mul): its inputs are int64 and float32, not of one type: the file is "
        "damaged, export again",
    ]


@pytest.mark.parametrize(
    ("build", "first"),
    [
        (
            lambda net: net.add("ConstantOfShape", [net.constant([2**40], np.int64)]),
            "(ConstantOfShape): it makes a constant of 1099511627776 values",
        ),
        (lambda net: net.add("LRN", [net.constant([[[1.0]]])], size=1), "(LRN): it reads const"),
        (lambda net: net.constant([np.nan, 1.0]), "constant 'c1' has 1 of 2 values that are not"),
    ],
)
def test_what_is_computed_of_a_refused_constant_is_no_second_problem(build, first, tmp_path):
    def summed(net: Network) -> str:
        axes = net.constant([0], np.int64)
        total = net.add("ReduceSum", [build(net), axes])
        return net.add("Split", [net.add("Unsqueeze", [total, axes])])

    net = Network()
    path = net.save(tmp_path / "net.onnx", added(net, summed(net)))
    with pytest.raises(ValueError, match="1 thing is not supported") as caught:
        onnx_float.read(path)
    assert first in str(caught.value)


def test_what_reads_activations_is_still_named_after_a_refused_constant(tmp_path):
    net = Network()
    wrong = net.add("ConstantOfShape", [net.constant([2**40], np.int64)])
    x = net.add("Mul", [net.conv("x", 3, 4), wrong])
    path = net.save(tmp_path / "net.onnx", net.add("ReduceSum", [x]))
    with pytest.raises(ValueError, match="2 things are not supported") as caught:
        onnx_float.read(path)
    assert "- node 'n2' (Mul)" not in str(caught.value)
    assert "- node 'n3' (ReduceSum): this operator is not supported" in str(caught.value)


def test_a_mask_that_is_read(tmp_path):
    def build(net: Network) -> str:
        net.add("Dropout", [net.constant([1.0, 2.0, 3.0, 4.0])])
        net.nodes[-1].output.append("mask")
        return "mask"

    (found,) = problems(tmp_path, build)
    assert found == "- node 'n0' (Dropout): its output 1 is read: only the first one is supported"
