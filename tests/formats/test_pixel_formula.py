"""How pixels become the input of an imported network: by its range, by options, or by a guess."""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx_networks import Network, onnx, quantized_statically, run
from tflite_builder import VALID, TfliteBuilder, ramp, saved

import pmt
from pmt.cli import main
from pmt.datasets import Dataset
from pmt.errors import OptionWarning
from pmt.formats.onnx import float_importer
from pmt.net.graph import Graph, Op, Tensor
from pmt.net.pixels import PixelFormula, pixel_formula
from pmt.quantization import quantize_graph

EVERY_PIXEL = np.arange(256, dtype=np.uint8).reshape(1, 16, 16, 1)
IMAGENET = PixelFormula((123.675, 116.28, 103.53), (58.395, 57.12, 57.375))


def activations(scale: float, zero_point: int, *, then: int = -128):
    """The input of an image network, and a later activation."""
    return [Tensor("x", 16, 16, 3, scale, zero_point), Tensor("y", 1, 1, 4, 0.1, then)]


@pytest.mark.parametrize(
    ("scale", "zero_point", "expected"),
    [
        (1 / 255, -128, PixelFormula((0.0,) * 3, (255.0,) * 3)),
        (1 / 256, -128, PixelFormula((0.0,) * 3, (256.0,) * 3)),
        (0.985 / 255, -128, PixelFormula((0.0,) * 3, (255.0,) * 3)),
        (2 / 255, 0, PixelFormula((128.0,) * 3, (127.5,) * 3)),
        (2 / 255, -1, PixelFormula((127.0,) * 3, (127.5,) * 3)),
        (1 / 128, 0, PixelFormula((128.0,) * 3, (128.0,) * 3)),
        (1.0, -128, PixelFormula((0.0,) * 3, (1.0,) * 3)),
        (1.0, 0, PixelFormula((128.0,) * 3, (1.0,) * 3)),
        (0.018658, -14, IMAGENET),
        # Fashion-MNIST's own mean and std: nothing says so.
        (0.0111, -55, PixelFormula((73.0,) * 3, (1 / 0.0111,) * 3, assumed=True)),
    ],
)
def test_a_usual_range_says_how_pixels_are_read(scale, zero_point, expected):
    found = pixel_formula(activations(scale, zero_point))
    assert (found.mean, found.assumed) == (expected.mean, expected.assumed)
    assert found.std == pytest.approx(expected.std)


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        # 0..1 and -1..1 have one symmetric range.
        (1 / 127, PixelFormula((128.0,) * 3, (127.0,) * 3, assumed=True)),
        (2.64 / 127, IMAGENET),
        (255 / 127, PixelFormula((0.0,) * 3, (1.0,) * 3)),
    ],
)
def test_a_symmetric_range_says_less(scale, expected):
    assert pixel_formula(activations(scale, 0, then=0)) == expected


def test_inputs_that_are_no_images_are_never_guessed():
    for shape in ((1, 1, 36), (49, 1, 1), (49, 10, 1), (8, 8, 2), (3, 3, 256)):
        assert not pixel_formula([Tensor("x", *shape, 0.0111, -55)]).assumed
    # A uint8 input is the pixel.
    assert not pixel_formula(activations(0.0111, -55), stored="uint8").assumed


@pytest.mark.parametrize(("scale", "warned"), [(0.58, True), (1 / 255, False)])
def test_pixels_for_a_spectrogram_are_told(scale, warned):
    """One channel, not square: only the data say whether it reads pixels."""
    tensors = [Tensor("x", 9, 4, 1, scale, -128), Tensor("y", 1, 1, 2, 0.1, 0)]
    weights, scales = ramp(2, 36), np.full(2, 0.01, np.float32)
    head = Op("fully_connected", "head", (0,), 1, weights=weights, weight_scales=scales)
    pixels = pixel_formula(tensors)
    model = pmt.Model.from_graph(Graph(tensors, [head], 0, 1, pixels.mean, pixels.std))
    data = Dataset(np.zeros((3, 9, 4, 1), np.uint8), np.array([0, 1, 0]), ("a", "b"), "clips")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.evaluate(data)
    assert [str(w.message) for w in caught] == warned * [
        "data set 'clips' has pixels, and the model's input seems to be none: 0..255 are read as "
        "0..147.9; load its file again with input_mean and input_std, or give inputs as float32"
    ]


def test_scaling_before_the_first_activation_counts():
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    found = pixel_formula(activations(0.018658, -14), factor=1 / std, offset=-mean / std)
    assert found.mean == pytest.approx(IMAGENET.mean)
    assert found.std == pytest.approx(IMAGENET.std)


def qdq(folder: Path, *, scale: float, zero: int, steps: tuple = ()) -> Path:
    """A QDQ network of one channel: ``steps`` of (kind, constant, scale, zero point), then Conv."""
    net = Network()
    x = net.quantized("x", scale, zero)
    for kind, value, *quantization in steps:
        x = net.quantized(net.add(kind, [x, net.constant(np.float32(value))]), *quantization)
    weights = net.constant(ramp(2, 1, 3, 3))
    w = net.add("DequantizeLinear", [weights, net.constant(np.float32(0.01))])
    y = net.quantized(net.add("Relu", [net.add("Conv", [x, w])]), 0.1, -128)
    return net.save(folder / "net.onnx", y, (1, 1, 16, 16))


GUESSED = (
    "net.onnx does not say what pixels it was trained on; 0..255 are read as -0.8103..2.02 (int8 = "
    "pixel - 128); give the mean and std of its training, in units of a 0..255 pixel"
)


def test_a_guess_is_told(tmp_path, capsys):
    path = qdq(tmp_path, scale=0.0111, zero=-55)
    with pytest.warns(OptionWarning) as caught:
        pmt.load(path)
    assert [str(w.message) for w in caught] == [f"input_mean, input_std: {GUESSED}"]
    assert caught[0].filename == __file__
    assert main(["info", str(path)]) == 0
    out, err = capsys.readouterr()
    assert err == f"pmt: warning: --input-mean, --input-std: {GUESSED}\n"
    assert (
        "\ninput     16x16x1: int8 = pixel - 128; pixels 0..255 are read as -0.8103..2.02\n" in out
    )


def test_warnings_name_the_line_that_called_pmt(tmp_path):
    path = qdq(tmp_path, scale=0.0111, zero=-55)
    for call in (
        lambda: pmt.model.convert(path, tmp_path / "net.pmt"),
        lambda: pmt.load(path, input_mean=0.0, input_std=0.5),
        lambda: pmt.model.convert(path, tmp_path / "other.pmt", input_mean=0.0, input_std=0.5),
    ):
        with pytest.warns(OptionWarning) as caught:
            call()
        assert [warning.filename for warning in caught] == [__file__]


def test_options_say_it_for_every_command(tmp_path, capsys):
    path, kept = qdq(tmp_path, scale=2.02 / 127, zero=0), tmp_path / "kept.pmt"
    options = ["--input-mean", "72.93", "--input-std", "90.015"]
    assert main(["convert", str(path), str(kept), *options]) == 0
    assert capsys.readouterr().err == ""
    images = EVERY_PIXEL
    model, again = pmt.load(path, input_mean=72.93, input_std=90.015), pmt.load(kept)
    assert model.prepare(images).ravel()[[0, 73, 255]].tolist() == [-51, 0, 127]
    np.testing.assert_array_equal(again.prepare(images), model.prepare(images))


def distinct(graph: Graph) -> list[int]:
    """How many of 256 pixels differ in the input and after the two steps that follow it."""
    model = pmt.Model.from_graph(graph)
    found = model.core.activations(model.prepare(EVERY_PIXEL)[0])
    return [len(np.unique(found[i])) for i in range(3)]


X2 = ("Mul", 2.0, 2 / 255, -128)
IN_GRAPH = {
    "x * 2 - 1": (1 / 255, X2, ("Sub", 1.0, 2 / 255, 0)),
    "x * 2 - 1, zero point -1": (1 / 255, X2, ("Sub", 1.0, 2 / 255, -1)),
    "x * 2 + -1": (1 / 255, X2, ("Add", -1.0, 2 / 255, 0)),
    "x / 127.5 - 1": (1.0, ("Div", 127.5, 2 / 255, -128), ("Sub", 1.0, 2 / 255, 0)),
    "1 - x * 2": (1 / 255, ("Mul", -2.0, 2 / 255, 127), ("Add", 1.0, 2 / 255, 0)),
}


@pytest.mark.parametrize("name", IN_GRAPH)
def test_normalization_in_the_graph_keeps_all_pixels(name, tmp_path):
    scale, *steps = IN_GRAPH[name]
    path = qdq(tmp_path, scale=scale, zero=-128, steps=tuple(steps))
    graph = pmt.load(path).to_graph()
    assert distinct(graph) == [256, 256, 256]


@pytest.mark.parametrize("zero", [0, -1])
def test_normalization_in_a_tflite_file_keeps_all_pixels(zero, tmp_path):
    b = TfliteBuilder()
    x = b.activation(1, 16, 16, 1, scale=1 / 255, zero=-128)
    doubled = b.activation(1, 16, 16, 1, scale=2 / 255, zero=-128)
    shifted = b.activation(1, 16, 16, 1, scale=2 / 255, zero=zero)
    y = b.activation(1, 14, 14, 2, scale=0.1, zero=-128)
    two = b.constant(np.array(127, np.int8), scales=[2 / 127])
    one = b.constant(np.array(127, np.int8), scales=[1 / 127])
    b.op("MUL", [x, two], [doubled])
    b.op("SUB", [doubled, one], [shifted])
    w = b.constant(ramp(2, 3, 3, 1), scales=[0.01])
    b.op("CONV_2D", [shifted, w, -1], [y], Padding=VALID, StrideH=1, StrideW=1)
    graph = pmt.load(saved(tmp_path, b.bytes([x], [y]))).to_graph()
    assert distinct(graph) == [256, 256, 256]
    model = pmt.Model.from_graph(graph)
    found = model.core.activations(model.prepare(EVERY_PIXEL)[0])[2].ravel()
    assert found.tolist() == list(range(-128, 128))


def test_quantization_keeps_all_pixels(tmp_path):
    net = Network()
    path = net.save(tmp_path / "net.onnx", net.head(net.conv("x", 1, 2), 392), (1, 1, 16, 16))
    floating = float_importer.read(path, input_mean=127.5, input_std=127.5)
    graph = quantize_graph(floating, np.tile(EVERY_PIXEL, (8, 1, 1, 1)))
    model = pmt.Model.from_graph(graph)
    assert model.prepare(EVERY_PIXEL).ravel().tolist() == list(range(-128, 128))


def test_normalization_of_float_inputs_in_the_graph_is_not_lost(tmp_path):
    """Windows of a sensor are quantized as they come: the network subtracts and scales."""
    net = Network()
    x = net.add("Mul", [net.add("Sub", ["x", net.constant(5.0)]), net.constant(0.1)])
    path = net.save(tmp_path / "net.onnx", net.head(net.conv(x, 1, 4), 4 * 98), (1, 1, 16, 9))
    floating = replace(float_importer.read(path), input_mean=(), input_std=())
    windows = np.random.default_rng(0).normal(5, 10, (40, 16, 9, 1)).astype(np.float32)
    model = pmt.Model.from_graph(quantize_graph(floating, windows))
    expected = run(path, windows.transpose(0, 3, 1, 2))
    assert np.abs(model.logits(windows) - expected).max() < 0.03 * np.abs(expected).max()


@pytest.mark.parametrize("scale", [1 / 127.5, 1 / 51, 1 / 127])
def test_pixels_on_a_tie_are_rounded_as_onnx_runtime_rounds_them(scale, tmp_path):
    """A symmetric range of quantize_static puts every other pixel between two steps."""
    net = Network()
    net.quantized("x", scale, 0)
    real = (EVERY_PIXEL.transpose(0, 3, 1, 2) / np.float32(255)).astype(np.float32)
    int8 = onnx.TensorProto.INT8
    expected = run(net.save(tmp_path / "steps.onnx", "v0", (1, 1, 16, 16), out_dtype=int8), real)
    model = pmt.load(qdq(tmp_path, scale=scale, zero=0), input_mean=0, input_std=255)
    assert model.prepare(EVERY_PIXEL).ravel().tolist() == expected.ravel().tolist()
    windows = real.reshape(EVERY_PIXEL.shape)
    assert model.prepare(windows).ravel().tolist() == expected.ravel().tolist()


@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (0.5, 0.5), (0.3, 0.7)])
def test_the_accuracy_of_onnx_runtime_is_that_of_pmt(mean, std, tmp_path):
    """Quantized by ONNX Runtime on normalized images: the int8 input is theirs to one step."""
    images = np.random.default_rng(0).integers(0, 256, (20, 16, 16, 1), np.uint8)
    images[0] = EVERY_PIXEL[0]
    real = ((images.transpose(0, 3, 1, 2) / 255 - mean) / std).astype(np.float32)
    net = Network()
    path = tmp_path / "float.onnx"
    net.save(path, net.add("Relu", [net.conv("x", 1, 2)]), (1, 1, 16, 16))
    path = quantized_statically(path, np.split(real, len(real)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = pmt.load(path)
    first = model.core.tensors()[model.core.input_tensor]
    steps = real.transpose(0, 2, 3, 1) / first["scale"] + first["zero_point"]
    assert np.abs(model.prepare(images) - steps).max() <= 1.0
