"""ONNX files with one change each: read as before, or refused in one line per problem."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks import every_op
from onnx_networks import Network, onnx

from pmt.errors import FileError
from pmt.formats.onnx import float_importer as onnx_float
from pmt.formats.onnx import importer as onnx_qdq
from pmt.formats.onnx.exporter import onnx_model

# Words of Python, NumPy and protobuf, which say nothing about the file.
INTERNALS = re.compile(
    r"NoneType|object has|index out|out of bounds|out of range|broadcast|recursion|<class|"
    r"positional|unpack|reshape array|invalid literal|null byte|TensorProto|Error\("
)
WEIRD = (0, -1, 7, 2**62)
Change = Callable[[Any], object]


def every_kind(net: Network) -> str:
    """A float network with constants that are computed, attributes of all types, moved axes."""
    x = net.add("Transpose", ["x"], perm=[0, 3, 1, 2])
    x = net.batch_norm(net.conv(x, 3, 4, pads=[1, 1, 1, 1], dilations=[1, 1]), 4)
    x = net.add("Clip", [x, net.constant(0.0), net.constant(6.0)])
    x = net.add("Concat", [x, net.conv(x, 4, 4, group=4, auto_pad="SAME_UPPER")], axis=1)
    pads = net.add("Concat", [net.constant([0, 0, 1, 1], np.int64)] * 2, axis=0)
    x = net.add("MaxPool", [net.add("Pad", [x, pads])], kernel_shape=[2, 2], strides=[2, 2])
    x = net.add("AveragePool", [x], kernel_shape=[2, 2], ceil_mode=1)
    parts = [net.constant([2], np.int64), net.constant([-1], np.int64)]
    axes = net.add("Range", [net.constant(v, np.int64) for v in (2, 4, 1)])
    axes = net.add("Gather", [net.add("Div", [axes, net.constant([1], np.int64)]), net.add(
        "Constant", [], value_ints=[1, 0])], axis=0)  # fmt: skip
    x = net.add("ReduceMean", [x, net.add("Split", [axes, parts[0]])], keepdims=0)
    x = net.add("Squeeze", [net.add("Unsqueeze", [x, parts[1]]), parts[1]])
    x = net.add("Dropout", [net.add("Reshape", [x, net.constant([0, -1], np.int64)])])
    x = net.add("Gemm", [x, net.weights(5, 8), net.weights(5)], transB=1, alpha=0.5)
    return net.add("Softmax", [net.add("Mul", [x, net.constant(2.0)])], axis=1)


@cache
def sound(kind: str) -> bytes:
    if kind == "qdq":
        return onnx_model(every_op().to_graph(), unsigned=True)
    net = Network(opset=18)
    return net.model(every_kind(net), ("n", 8, 8, 3)).SerializeToString()


def node_changes(node: Any) -> Iterator[Change]:
    for i in range(len(node.input)):
        yield lambda n, i=i: n.input.pop(i)
        yield lambda n, i=i: n.input.__setitem__(i, "")
    yield lambda n: n.input.extend(["x", "x", "x"])
    yield lambda n: n.output.insert(0, "before")
    yield lambda n: n.output.extend(["more", "most"])
    yield lambda n: setattr(n, "domain", "my\ndomain")
    yield lambda n: n.attribute.append(
        onnx.AttributeProto(name="axis", type=onnx.AttributeProto.INT, ref_attr_name="outer")
    )
    for i, attribute in enumerate(node.attribute):
        yield lambda n, i=i: n.attribute.pop(i)
        yield lambda n, i=i: n.attribute.append(n.attribute[i])
        for kind in (1, 2, 3, 4, 5, 7, 8):
            yield lambda n, i=i, kind=kind: setattr(n.attribute[i], "type", kind)
        for value in WEIRD:
            if attribute.ints:
                yield lambda n, i=i, value=value: n.attribute[i].ints.__setitem__(0, value)
            yield lambda n, i=i, value=value: setattr(n.attribute[i], "i", value)


def tensor_changes(tensor: Any) -> Iterator[Change]:
    for value in WEIRD:
        yield lambda t, value=value: t.dims.append(value)
        yield lambda t, value=value: t.dims.__delitem__(slice(0, 1))
    for kind in (0, 2, 7, 8, 14, 99):
        yield lambda t, kind=kind: setattr(t, "data_type", kind)
    for place in ("\0", "..", "a\nb"):
        yield lambda t, place=place: (
            setattr(t, "data_location", onnx.TensorProto.EXTERNAL),
            t.external_data.add(key="location", value=place),
            t.external_data.add(key="offset", value="three"),
        )


def changes(kind: str) -> Iterator[tuple[str, bytes]]:
    model = onnx.load_from_string(sound(kind))
    for part, of_part in (("node", node_changes), ("initializer", tensor_changes)):
        for place, whole in enumerate(getattr(model.graph, part)):
            for number, change in enumerate(of_part(whole)):
                changed = onnx.load_from_string(sound(kind))
                change(getattr(changed.graph, part)[place])
                yield f"{part} {place}, change {number}", changed.SerializeToString()
    data = sound(kind)
    for at in range(0, len(data), 89):
        yield f"cut at {at}", data[:at]
        yield f"flipped at {at}", data[:at] + bytes([data[at] ^ 5]) + data[at + 1 :]


def refusal(read: Callable[[Path], object], path: Path) -> str:
    """The error of a reader, empty where it accepts the file."""
    try:
        read(path)
    except ValueError as error:
        problems = error.problems if isinstance(error, FileError) else ()
        return f"several lines in {problems}" if "\n" in "".join(problems) else str(error)
    return ""


@pytest.mark.parametrize(("kind", "read"), [("float", onnx_float.read), ("qdq", onnx_qdq.read)])
def test_one_change_is_read_or_refused_in_words_about_the_file(kind, read, tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(sound(kind))
    read(path)
    for what, data in [*changes(kind)][::2]:
        path.write_bytes(data)
        first, *others = refusal(read, path).split("\n")
        assert first.startswith("net.onnx: ") or not first, what
        assert all(line.startswith("- ") for line in others), (what, others)
        assert not INTERNALS.search("".join([first, *others])), (what, first, others)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda n: n.input.pop(), "(Flatten): it has 0 inputs, not 1: the file is damaged, expor"),
        (lambda n: n.input.append("c0"), "(Flatten): it has 2 inputs, not 1: the file is damaged"),
        (lambda n: n.input.__setitem__(0, ""), "(Flatten): its input 0 (input) is left out: the"),
        (
            lambda n: n.attribute.add(name="axis", ref_attr_name="a\nb", type=2),
            "(Flatten): attribute axis is one of a function, outside of any: the file is damaged",
        ),
        (
            lambda n: n.attribute.add(name="axis", f=2.0, type=1),
            "(Flatten): attribute axis is '2.0', not INT: the file is damaged, export again",
        ),
        (
            lambda n: n.attribute.extend([onnx.helper.make_attribute("axis", 1)] * 2),
            "(Flatten): it has two attributes 'axis': the file is damaged, export again",
        ),
        (lambda n: setattr(n, "domain", "a\nb"), "(a\\nb::Flatten): this operator is not suppo"),
        (lambda n: setattr(n, "op_type", ""), "(no operator): this operator is not supported"),
    ],
)
def test_a_node_that_is_not_as_onnx_defines_it(change, message, tmp_path):
    net = Network()
    model = net.model(net.head(net.conv("x", 3, 4), 144))
    change(model.graph.node[1])
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match=re.escape(f"- node 'n1' {message}")) as caught:
        onnx_float.read(path)
    assert str(caught.value).count("\n") == 1


@pytest.mark.parametrize("axis", [4, -5, 1])
def test_scales_along_an_axis_that_is_not_there(axis, tmp_path):
    net = Network()
    weights = net.quantized(net.weights(4, 3, 3, 3), [0.1] * 4, [0] * 4, axis=axis)
    x = net.quantized(net.add("Conv", [net.quantized("x", 0.05, 0), weights]), 0.1, 0)
    path = net.save(tmp_path / "net.onnx", x)
    message = rf"\(QuantizeLinear\): its 4 scales do not fit axis {axis} of shape \(4, 3, 3, 3\)"
    with pytest.raises(ValueError, match=message):
        onnx_qdq.read(path)


def test_data_elsewhere_are_refused_without_words_of_the_library(tmp_path):
    net = Network()
    model = net.model(net.head(net.conv("x", 3, 4), 144))
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="a\0b")
    tensor.external_data.add(key="offset", value="three")
    path: Path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    message = (
        r"\(its data at location 'a\\x00b', offset 'three', length '' are not as many values of "
        r"type FLOAT in the model's folder\): the file is damaged, or its data file is missing"
    )
    with pytest.raises(ValueError, match=message):
        onnx_float.read(path)
