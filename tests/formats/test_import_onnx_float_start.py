"""int8 ONNX networks that compute in float before their first QuantizeLinear."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx_networks import Network, onnx, quantized_statically, run

import pmt
from pmt.formats.onnx import float_importer
from pmt.quantization import quantize_graph

Start = Callable[[Network, str], str]
SHAPE = (1, 1, 8, 8)
IN_FLOAT = "it reads the input in float, without QuantizeLinear.*: put a QuantizeLinear"


def average(net: Network, x: str, **attributes) -> str:
    return net.add("AveragePool", [x], kernel_shape=[2, 2], strides=[2, 2], **attributes)


def padded_average(net: Network, x: str) -> str:
    return average(net, x, pads=[1, 1, 1, 1], count_include_pad=1)


def clipped_average(net: Network, x: str) -> str:
    return net.add("Min", [average(net, x), net.constant(0.5)])


def average_after_maximum(net: Network, x: str) -> str:
    return average(net, maximum(net, x))


def mean_of_rows(net: Network, x: str) -> str:
    return net.add("ReduceMean", [x], axes=[2])


def maximum(net: Network, x: str) -> str:
    return net.add("MaxPool", [x], kernel_shape=[2, 2])


def clipped_maximum(net: Network, x: str) -> str:
    return net.add("Clip", [maximum(net, x), net.constant(0.3), net.constant(0.8)])


def normalized(net: Network, x: str) -> str:
    return net.add("Div", [net.add("Sub", [x, net.constant(0.4)]), net.constant(0.3)])


def padded(net: Network, x: str) -> str:
    return net.add("Pad", [normalized(net, x), net.constant([0, 0, 1, 1, 0, 0, 1, 1], np.int64)])


def joined(net: Network, x: str) -> str:
    return net.add("Concat", [x, x], axis=1)


def relu(net: Network, x: str) -> str:
    return net.add("Relu", [normalized(net, x)])


def clipped(net: Network, x: str) -> str:
    return net.add("Clip", [x, net.constant(0.2), net.constant(0.8)])


def saved(path: Path, start: Start, *, quantized_first: bool = False) -> Path:
    """A float network that starts so, and goes on with a layer."""
    net = Network()
    x = net.quantized("x", 1 / 255, -128) if quantized_first else "x"
    x = start(net, x)
    x = net.conv(x, 2 if start is joined else 1, 4, 1)
    return net.save(path, net.head(net.add("GlobalMaxPool", [x]), 4), SHAPE)


def real(images: np.ndarray) -> np.ndarray:
    return (images.transpose(0, 3, 1, 2) / 255).astype(np.float32)


def noise(ends: tuple[int, ...] = ()) -> np.ndarray:
    """Random pixels; of a first image of one value, averages are as wide as pixels."""
    images = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 1)).astype(np.uint8)
    for index, end in enumerate(ends):
        images[index] = end
    return images


def quantized_on(path: Path, images: np.ndarray, **options) -> Path:
    return quantized_statically(path, [image[None] for image in real(images)], **options)


def most_steps(path: Path, images: np.ndarray) -> float:
    """How far the outputs are from ONNX Runtime's, in steps of the output."""
    model = pmt.load(path, input_mean=0, input_std=255)
    graph = model.to_graph()
    found = model.logits(images, threads=1, int8_logits=True)
    expected = run(path, real(images)).reshape(found.shape)
    return float(np.abs(found - expected).max() / graph.tensors[graph.output].scale)


def minimum(net: Network, x: str) -> str:
    return net.add("Relu", [net.add("Min", [x, net.constant(0.4)])])


@pytest.mark.parametrize(
    "start", [maximum, clipped_maximum, normalized, padded, joined, relu, clipped, minimum]
)
def test_what_commutes_with_quantization_is_read(start, tmp_path):
    path = quantized_on(saved(tmp_path / "net.onnx", start), noise())
    assert most_steps(path, noise()) <= 2


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (
            average,
            r"averages the input in float.* for 0 to 0\.\d+: pixels go from 0 to 1, .*; put a Q",
        ),
        (clipped_average, r"averages the input in float.* for 0 to 0\.5: "),
        (mean_of_rows, "averages the input in float"),
        (padded_average, IN_FLOAT),
        (average_after_maximum, IN_FLOAT),
    ],
)
def test_what_does_not_is_refused_and_the_remedies_hold(start, message, tmp_path):
    source = saved(tmp_path / "net.onnx", start)
    path = quantized_on(source, noise())
    with pytest.raises(ValueError, match=message):
        pmt.load(path, input_mean=0, input_std=255)

    float_graph = float_importer.read(source, input_mean=0.0, input_std=255.0)
    ready = pmt.Model.from_graph(quantize_graph(float_graph, noise()))
    expected = run(source, real(noise())).reshape(20, -1)
    assert np.mean(ready.logits(noise()).argmax(1) == expected.argmax(1)) >= 0.9

    path = quantized_on(saved(source, start, quantized_first=True), noise())
    assert most_steps(path, noise()) <= 2


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (
            lambda net, x: padded_average(net, relu(net, x)),
            r"\(AveragePool\): it reads node 'n1' \(Div\) in float.* leaves Div in",
        ),
        (
            lambda net, x: average(net, normalized(net, x)),
            r"'n2' \(AveragePool\) averages node 'n1' \(Div\) in float.* leaves Div in",
        ),
        (
            lambda net, x: padded_average(net, net.add("Sub", [x, net.constant(0.4)])),
            r"\(AveragePool\): it reads node 'n0' \(Sub\) in float.* leaves Sub in",
        ),
        (
            lambda net, x: average(net, maximum(net, minimum(net, x))),
            r"\(AveragePool\): it reads node 'n0' \(Min\) in float.* leaves Min in",
        ),
    ],
)
def test_what_the_quantizer_leaves_in_float_is_named_and_can_be_added(start, message, tmp_path):
    source = saved(tmp_path / "net.onnx", start)
    with pytest.raises(ValueError, match=message) as caught:
        pmt.load(quantized_on(source, noise()), input_mean=0, input_std=255)

    from onnxruntime.quantization import registry

    said = re.search(
        r"op_types_to_quantize=\[\*QDQRegistry, \*QLinearOpsRegistry, (.*?)\], of",
        str(caught.value),
    )
    assert said is not None
    types = [*registry.QDQRegistry, *registry.QLinearOpsRegistry, *re.findall(r"\w+", said[1])]
    assert most_steps(quantized_on(source, noise(), op_types_to_quantize=types), noise()) <= 2


def test_an_average_whose_scale_holds_all_pixels_is_read(tmp_path):
    path = quantized_on(saved(tmp_path / "net.onnx", average), noise(ends=(0, 255)))
    assert most_steps(path, noise()) <= 2
    # The scale alone does not say so.
    with pytest.raises(ValueError, match=r"may go beyond.*; say by input_mean and input_std that"):
        pmt.load(path)


def test_an_input_with_two_scales_is_refused(tmp_path):
    net = Network()
    ends = [net.quantized(maximum(net, "x"), scale, -128) for scale in (0.004, 0.003)]
    values = net.constant(np.ones((4, 2, 1, 1)), np.int8)
    weights = net.add("DequantizeLinear", [values, net.constant(0.01)])
    both = net.quantized(net.add("Concat", ends, axis=1), 0.004, -128)
    x = net.quantized(net.add("Conv", [both, weights]), 0.01, 0)
    path = net.save(tmp_path / "net.onnx", x, SHAPE)
    with pytest.raises(
        ValueError, match=r"'n0' \(MaxPool\) reads the input in float.* 0\.004, and elsewhere with"
    ):
        pmt.load(path)


@pytest.mark.parametrize("activations", ["QInt8", "QUInt8"])
def test_a_padding_of_a_constant_node_is_read(activations, tmp_path):
    def start(net: Network, x: str) -> str:
        zero = net.add("Constant", [], value_float=0.0)
        return net.add("Pad", [x, net.constant([0, 0, 1, 1, 0, 0, 1, 1], np.int64), zero])

    source = saved(tmp_path / "net.onnx", start)
    path = quantized_statically(source, [image[None] for image in real(noise())], activations)
    assert most_steps(path, noise()) <= 1


def test_weights_of_constant_nodes_need_the_preprocessing_of_the_quantizer(tmp_path):
    net = Network()
    weights = net.rng.normal(0.3, 0.4, (4, 1, 3, 3)).astype(np.float32)
    x = net.add("Conv", ["x", net.add("Constant", [], value=onnx.numpy_helper.from_array(weights))])
    source = net.save(tmp_path / "net.onnx", net.head(net.add("GlobalMaxPool", [x]), 4), SHAPE)
    with pytest.raises(ValueError, match=r"zero points other than 0.*; quant_pre_process first"):
        pmt.load(quantized_on(source, noise()), input_mean=0, input_std=255)

    from onnxruntime.quantization.shape_inference import quant_pre_process

    quant_pre_process(source, source)
    assert most_steps(quantized_on(source, noise()), noise()) <= 1
