"""ONNX files that are damaged, hostile, or beyond what an int8 classifier can be."""

from pathlib import Path

import numpy as np
import pytest
from onnx_networks import Network

from pmt import formats
from pmt.formats.onnx import float_importer as onnx_float

onnx = pytest.importorskip("onnx")
NOT_FINITE = np.array([np.nan, np.inf], np.float32).tobytes()


def small(net: Network) -> str:
    return net.head(net.conv("x", 3, 4), 4 * 36)


def refused(path: Path, message: str) -> str:
    with pytest.raises(ValueError, match=message) as caught:
        onnx_float.read(path)
    assert str(caught.value).startswith(path.name)
    return str(caught.value)


def saved(tmp_path: Path, build=small, *shape, change=None, **options) -> Path:
    """The network ``build`` makes, in a file, after ``change`` has damaged the model."""
    net = Network()
    model = net.model(build(net), *shape, **options)
    if change is not None:
        change(model)
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("content", [b"", b"something else", b"\x08\x07" * 40, b"\xff" * 1000])
def test_files_that_are_no_model(content, tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    refused(path, r"net\.onnx: is not an ONNX model")
    with pytest.raises(ValueError, match="is not an ONNX model"):
        formats.read(path)


def put(values, value) -> None:
    values[0] = value


def weights(model):
    return model.graph.initializer[0]


# What is done to the file of a convolution and a head, and the refusal.
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda m: put(m.graph.node[0].input, m.graph.node[1].output[0]),
            r"node 'n0' \(Conv\) reads 'v1', which no node before it, input or initializer gives",
        ),
        (
            lambda m: put(m.graph.node[1].output, m.graph.node[0].output[0]),
            r"'v0' is written twice, the second time by node 'n1' \(Flatten\)",
        ),
        (
            lambda m: put(m.graph.node[1].input, "nowhere"),
            r"node 'n1' \(Flatten\) reads 'nowhere', which no node before it",
        ),
        (
            lambda m: setattr(m.graph.initializer[1], "name", weights(m).name),
            r"two initializers have the same name",
        ),
        (
            lambda m: setattr(m.opset_import[0], "version", 8),
            r"is of opset 8, at least 9 is needed: convert it with onnx\.version_converter",
        ),
        (lambda m: m.graph.output.add(name="v0"), r"the outputs 'v2', 'v0', one of each is supp"),
        (lambda m: m.graph.input.add(name="mask"), r"the inputs 'x', 'mask' and"),
        (lambda m: m.functions.add(name="f"), r"has 1 functions of its own: inline them"),
    ],
)
def test_graphs_that_are_no_chain_of_values(change, message, tmp_path):
    refused(saved(tmp_path, change=change), message)


@pytest.mark.parametrize(
    ("shape", "change", "first"),
    [
        ((1, 3, 8, 8), lambda m: m.graph.output.add(name="v0"), "has the inputs 'x' and the outp"),
        ((1, 3, 0, 8), lambda m: None, "the input 'x' has shape (1, 3, 0, 8) (0: open): export"),
    ],
)
def test_no_operator_hides_behind_another_finding(shape, change, first, tmp_path):
    def build(net: Network) -> str:
        x = net.add("Tanh", [net.conv("x", 3, 4)])
        return net.add("LSTM", [net.add("Split", [x], axis=1), net.weights(4, 4)])

    message = refused(saved(tmp_path, build, shape, change=change), "things are not supported")
    heads = [line.partition(",")[0] for line in message.splitlines()]
    assert heads[0] == "net.onnx: 4 things are not supported:"
    assert heads[1].startswith(f"- {first.partition(',')[0]}")
    assert "- node 'n1' (Tanh): this operator is not supported: train the network" in message
    assert "- node 'n2' (Split): this operator is not supported: export without" in message
    assert "- node 'n3' (LSTM): this operator is not supported: pmt trains networks with" in message


def outside(model) -> None:
    weights(model).ClearField("raw_data")
    weights(model).data_location = onnx.TensorProto.EXTERNAL
    weights(model).external_data.add(key="location", value="../secret")


def too_short_outside(model) -> None:
    outside(model)
    weights(model).external_data[0].value = "net.onnx"
    weights(model).external_data.add(key="offset", value="1000000000")


def narrow(model) -> None:
    weights(model).data_type = onnx.TensorProto.INT16
    weights(model).raw_data = bytes(216)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda m: setattr(weights(m), "raw_data", weights(m).raw_data[:-4]),
            r"constant 'c0' of shape \(4, 3, 3, 3\) cannot be read \(its data are not as many",
        ),
        (
            lambda m: put(weights(m).dims, 2**40),
            r"constant 'c0' of shape \(1099511627776, 3, 3, 3\) cannot be read",
        ),
        (
            lambda m: put(weights(m).dims, -4),
            r"'c0' has shape \(-4, 3, 3, 3\): the file is damaged",
        ),
        (
            lambda m: setattr(weights(m), "raw_data", NOT_FINITE + weights(m).raw_data[8:]),
            r"'c0' has 2 of 108 values that are not finite: train again or repair",
        ),
        (narrow, r"'c0' is int16: weights must be float32 or int8"),
        (outside, r"constant 'c0' of shape \(4, 3, 3, 3\) cannot be read .*secret"),
        (too_short_outside, r"constant 'c0' of shape \(4, 3, 3, 3\) cannot be read"),
    ],
)
def test_constants(change, message, tmp_path):
    (tmp_path.parent / "secret").write_bytes(bytes(1000))
    (tmp_path / "net.onnx").write_bytes(bytes(1000))
    refused(saved(tmp_path, change=change), message)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (("n", 3, "h", "w"), r"has shape \(0, 3, 0, 0\) \(0: open\): export with a batch"),
        (("n", 3, 4, 8, 8), r"has shape \(0, 3, 4, 8, 8\) \(0: open\): export with a batch"),
        (("n",), r"has shape \(0,\) \(0: open\): export with a batch"),
        (
            ("n", 192),
            r"has shape \(1, 192\), not \(batch, .*: images and, as \(batch, channels, le",
        ),
        (("n", 9, 8, 8), r"weights \(4, 3, 3, 3\) in 1 groups do not fit 9 input channels"),
        (("n", 3, 2, 2), r"its window of \(3, 3\) does not fit the 2x2 input"),
        (("n", 3, 9, 8), r"weights \(4, 144\) \(out, in\) do not fit an input of shape \(1, 168\)"),
        (("n", 1, 8, 8), r"weights \(4, 3, 3, 3\) in 1 groups do not fit 1 input channels"),
    ],
)
def test_inputs(shape, message, tmp_path):
    refused(saved(tmp_path, small, shape), message)


def test_whole_numbers_as_input(tmp_path):
    message = r"the input 'x' is of data type 7: float32 is supported"
    refused(saved(tmp_path, small, dtype=onnx.TensorProto.INT64), message)


def test_all_problems_are_named_at_once_with_their_remedies(tmp_path):
    def build(net: Network) -> str:
        x = net.conv("x", 3, 4)
        for _ in range(5):
            x = net.add("HardSwish", [x])
        gate = net.add("Sigmoid", [net.conv(x, 4, 4, 1)])
        x = net.conv(net.add("Mul", [gate, x]), 4, 6, group=2, dilations=[9, 9])
        return net.add("ArgMax", [net.add("Split", [x], axis=1)])

    found = refused(saved(tmp_path, build), "5 things are not supported").splitlines()
    assert found[1] == (
        "- node 'n1', 'n2', 'n3' and 2 more (HardSwish): this operator is not supported: "
        "train the network with ReLU or ReLU6 instead"
    )
    assert found[2].startswith("- node 'n7' (Sigmoid): this operator is not supported: train")
    assert found[3].startswith("- node 'n8' (Mul): both inputs are activations (squeeze")
    assert found[4].startswith("- node 'n9' (Conv): its window of (19, 19) does not fit the 6x6")
    assert "(Split): this operator is not supported: export without branches" in found[5]
    assert len(found) == 6  # ArgMax at the end is left out


@pytest.mark.parametrize(
    ("kind", "inputs", "attributes", "message"),
    [
        ("Resize", [], {}, "this operator is not supported: resize the images before the network"),
        ("Einsum", [], {}, "this operator is not supported: replace it before the export"),
        ("MaxPool", [], {"kernel_shape": [2, 2], "dilations": [2, 2]}, "it has dilations"),
        ("MaxPool", [], {"kernel_shape": [2]}, r"kernel_shape is \[2\], not 2 numbers"),
        ("AveragePool", [], {"kernel_shape": [2, 2], "pads": [2, 0, 0, 0]}, "is not smaller than"),
        ("AveragePool", [], {"kernel_shape": 3}, "attribute kernel_shape is '3'"),
        ("Pad", [[0, 0, 1, 1, 0, 0, 1, 1]], {"mode": "reflect"}, "it pads by 'reflect'"),
        ("Pad", [[0, 1, 0, 0, 0, 0, 0, 0]], {}, "only height and width can be padded"),
        ("Pad", [[0, 0, 0, 0, 0, 0, -1, 0]], {}, "only height and width can be padded"),
        ("Concat", [], {"axis": 2}, r"it joins values of shapes \(1, 4, 6, 6\) along axis 2"),
        ("Concat", [], {"axis": 9}, "its axis is 9, of values of 4 axes"),
        ("Concat", [], {}, "it has no attribute axis: the file is damaged, export again"),
        ("Reshape", [[1, 2, 2, 36]], {}, r"it reshapes \(1, 4, 6, 6\) to \(1, 2, 2, 36\), which"),
        ("Reshape", [[7, -1]], {}, r"it reshapes \(1, 4, 6, 6\) to \[7, -1\]"),
        ("ReduceMean", [], {"axes": [1]}, r"it averages the axes \[1\] of a value of shape"),
        ("Transpose", [], {"perm": [0, 1, 1, 2]}, r"perm \[0, 1, 1, 2\] does not order 4 axes"),
        ("Squeeze", [[1]], {}, "only sizes of 1 can be removed"),
        ("Softmax", [], {"axis": 2}, "it runs over axis 2"),
        ("Cast", [], {"to": 7}, "it casts an activation to data type 7"),
        ("QuantizeLinear", [1], {}, "the network is quantized already: load it as it is"),
    ],
)
def test_nodes(kind, inputs, attributes, message, tmp_path):
    def build(net: Network) -> str:
        constants = [net.constant(value, np.int64) for value in inputs]
        opset = {"ReduceMean": 13}.get(kind)
        net.opset = opset or net.opset
        x = net.add(kind, [net.conv("x", 3, 4), *constants], **attributes)
        return net.add("GlobalAveragePool", [x])

    refused(saved(tmp_path, build), rf"- node 'n1' \({kind}\): .*{message}")


def test_constants_do_not_grow_beyond_the_file(tmp_path):
    def build(net: Network) -> str:
        wide = net.add("ConstantOfShape", [net.constant([2**20, 2**20], np.int64)])
        doubled = net.constant(np.zeros(4096, np.float32))
        for _ in range(40):
            doubled = net.add("Concat", [doubled, doubled], axis=0)
        return net.add("Add", [net.add("Add", [net.conv("x", 3, 4), wide]), doubled])

    found = refused(saved(tmp_path, build), r"it makes a constant of 1099511627776 values")
    assert "(Concat): it makes a constant of 131072 values, the whole file has 65536" in found


@pytest.mark.parametrize(
    ("build", "count"),
    [
        (lambda net, x: net.add("Expand", [x, net.constant([2**20, 2**20], np.int64)]), 2**40),
        (lambda net, x: net.add("Tile", [x, net.constant([2**20], np.int64)]), 2**20),
        (lambda net, x: net.add("MatMul", [net.weights(999, 1), net.weights(1, 999)]), 998001),
    ],
)
def test_what_is_computed_of_constants_is_bounded(build, count, tmp_path):
    found = saved(
        tmp_path, lambda net: net.add("Add", [small(net), build(net, net.constant([1.0]))])
    )
    refused(found, f"it makes a constant of {count} values, the whole file has 65536: fold const")


def test_constants_do_not_grow_by_number(tmp_path):
    def build(net: Network) -> str:
        x = net.add("ConstantOfShape", [net.constant([60_000], np.int64)])
        for _ in range(20):
            x = net.add("Neg", [x])
        return net.add("Add", [small(net), x])

    refused(saved(tmp_path, build), "constants are computed of more than 16 times the values of")


def test_a_constant_of_more_axes_than_its_value_is_refused(tmp_path):
    def build(net: Network) -> str:
        return net.add("Add", [small(net), net.constant(np.ones((1, 1, 4, 1, 1)))])

    refused(saved(tmp_path, build), r"a constant of shape \(1, 1, 4, 1, 1\) does not fit a value")


def test_indices_that_are_read_one_by_one_count(tmp_path):
    def build(net: Network) -> str:
        many = net.constant([60_000], np.int64)
        indices, x = net.add("ConstantOfShape", [many]), net.constant([1.0])
        updates = net.add("Cast", [indices], to=1)
        indices = net.add("Cast", [indices], to=7)
        for _ in range(20):
            x = net.add("ScatterElements", [x, indices, updates])
        return net.add("Add", [small(net), x])

    refused(saved(tmp_path, build), "constants are computed of more than 16 times the values of")


def test_constants_that_are_not_computed_say_so(tmp_path):
    def build(net: Network) -> str:
        draw = net.add("RandomNormal", [], shape=[4])
        kernel = net.add("Conv", [net.weights(4, 3, 5, 5), net.weights(3, 3, 3, 3)])
        once = net.add("Conv", ["x", kernel])
        return net.add("Add", [net.head(once, 4 * 36), draw])

    found = refused(saved(tmp_path, build), "2 things are not supported")
    assert "- node 'n0' (RandomNormal): this operator is not supported: replace it" in found
    assert (
        "- node 'n1' (Conv): it reads constants alone, of which it is not computed: fold "
        "constants before the export" in found
    )


def test_many_groups_are_not_written_out(tmp_path):
    def build(net: Network) -> str:
        return net.add("GlobalAveragePool", [net.conv(net.conv("x", 3, 256), 256, 512, group=128)])

    refused(saved(tmp_path, build), "with 128 times the weights, at most 64 times")


def test_weights_named_again_and_again(tmp_path):
    def build(net: Network) -> str:
        x = net.conv("x", 3, 256)
        weights = net.weights(256, 256, 1, 1)
        for _ in range(200):
            x = net.add("Conv", [x, weights])
        return net.add("GlobalAveragePool", [x])

    refused(saved(tmp_path, build), "the layers have far more weights than the file")


def test_sizes_beyond_an_image(tmp_path):
    def build(net: Network) -> str:
        shape = net.constant([1, 1, 1, -1], np.int64)
        x = net.add("Reshape", [net.add("Transpose", ["x"], perm=[0, 2, 3, 1]), shape])
        x = net.add("Transpose", [x], perm=[0, 3, 1, 2])
        return net.add("MaxPool", [x], kernel_shape=[1, 1])

    message = r"it makes op 1, of height, width, channels \(1, 1, 50331648\): at most 1024 ops"
    refused(saved(tmp_path, build, (1, 3, 4096, 4096)), message)
    refused(saved(tmp_path, build, (1, 3, 8192, 8192)), "at most 4096 a side and 65536 channels")


def test_an_activation_after_the_softmax(tmp_path):
    def build(net: Network) -> str:
        return net.add("Relu", [net.add("Softmax", [small(net)], axis=1)])

    refused(saved(tmp_path, build), "a softmax is supported at the end only, export up to the")


def test_a_network_without_layers(tmp_path):
    refused(saved(tmp_path, lambda net: net.add("Relu", ["x"])), "there is no layer with weights")
