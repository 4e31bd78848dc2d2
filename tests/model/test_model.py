"""Models: loading, inspecting, preparing input, saving, and refusing damaged images."""

import os
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import pixels, residual_network, smooth_network

import pmt
from pmt import _core
from pmt.cli import main
from pmt.model import Model
from pmt.net.graph import Graph, Op, Tensor

IMAGE = residual_network().image()


def test_save_and_load_keep_every_byte(tmp_path):
    model = residual_network()
    model.save(tmp_path / "model.pmt")
    assert (tmp_path / "model.pmt").read_bytes() == IMAGE
    assert pmt.load(tmp_path / "model.pmt").image() == IMAGE
    assert os.listdir(tmp_path) == ["model.pmt"]


def test_changed_weights_are_saved_with_a_fresh_checksum():
    model = residual_network()
    weights = model.core.weights(0)
    weights[0, 0, 0, 0] ^= 1
    model.core.set_parameters(0, weights, model.core.bias(0))
    again = pmt.Model(model.image())
    np.testing.assert_array_equal(again.core.weights(0), weights)
    assert model.image() != IMAGE


def test_graph_round_trip_keeps_every_byte():
    assert pmt.Model.from_graph(residual_network().to_graph()).image() == IMAGE


@settings(max_examples=60, deadline=None)
@given(size=st.integers(0, len(IMAGE) - 1))
def test_truncated_images_are_refused(size):
    with pytest.raises(ValueError, match=r"image|magic"):
        pmt.Model(IMAGE[:size])


@settings(max_examples=200, deadline=None)
@given(position=st.integers(0, len(IMAGE) - 1), bit=st.integers(0, 7))
def test_flipped_bits_are_refused(position, bit):
    damaged = bytearray(IMAGE)
    damaged[position] ^= 1 << bit
    with pytest.raises(ValueError, match=r"image|checksum|version|header"):
        pmt.Model(bytes(damaged))


@settings(max_examples=300, deadline=None)
@given(position=st.integers(16, len(IMAGE) - 1), value=st.integers(0, 255))
def test_hostile_images_with_a_right_checksum_never_crash(position, value):
    damaged = bytearray(IMAGE)
    damaged[position] = value
    damaged[12:16] = _core.crc32(bytes(damaged[16:])).to_bytes(4, "little")
    try:
        model = pmt.Model(bytes(damaged))
    except (ValueError, UnicodeDecodeError):
        return
    model.core.logits(np.zeros((1, *model.input_shape), np.int8))


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "text.pmt").write_text("hello")
    with pytest.raises(
        ValueError, match=r"text\.pmt: not a \.pmt image; give a file that pmt wrote"
    ):
        pmt.load(tmp_path / "text.pmt")
    (tmp_path / "bad.pmt").write_bytes(IMAGE[:-1])
    with pytest.raises(ValueError, match=r"bad\.pmt: the image is shorter than its header says"):
        pmt.load(tmp_path / "bad.pmt")
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        pmt.load(tmp_path / "none.pmt")
    with pytest.raises(FileNotFoundError, match=r"the folder holds no checkpoint\.pmt"):
        pmt.load(tmp_path)
    with pytest.raises(ValueError, match=r"suffix '\.bin' is unknown"):
        pmt.load(tmp_path / "model.bin")


def test_layers_say_what_they_are():
    layers = residual_network().layers
    assert [(layer.index, layer.name, layer.weights, layer.macs) for layer in layers] == [
        (0, "stem", 216, 13824),
        (1, "expand", 128, 8192),
        (2, "depth", 144, 9216),
        (3, "project", 128, 8192),
        (5, "down", 576, 9216),
        (7, "head", 32, 32),
    ]
    assert layers[4].output_shape == (4, 4, 8)
    assert repr(residual_network()) == (
        "<pmt.Model residual: 8x8x3 -> 4 classes, 6 layers, 1,224 weights, 48,672 MACs>"
    )


def test_a_notebook_shows_the_layers():
    html = residual_network()._repr_html_()
    assert html.startswith(
        "<table><caption>pmt.Model residual: 8x8x3 -&gt; 4 classes, 6 layers, 1,224 weights, "
        "48,672 MACs</caption><thead><tr><th>op</th><th>layer</th><th>kind</th><th>output</th>"
        "<th>weights</th><th>MACs</th><th>blocks</th></tr></thead><tbody>"
        "<tr><td>0</td><td>stem</td><td>conv2d</td><td>8x8x8</td><td>216</td><td>13,824</td>"
        "<td>B1 all</td></tr>"
    )
    assert html.count("<tr>") == 7


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("B1", [0, 1]),
        ("head,B1", [0, 1, 7]),
        ("stem", [0]),
        (["down", 0], [0, 5]),
        (3, [3]),
        ("all", [0, 1, 2, 3, 5, 7]),
    ],
)
def test_layers_are_selected_by_block_name_or_index(wanted, expected):
    assert residual_network().select_layers(wanted) == expected


@pytest.mark.parametrize("wanted", ["", [], 4, ["stem", 99], "stem,nothing"])
def test_unknown_layers_are_refused(wanted):
    with pytest.raises(ValueError, match="layers="):
        residual_network().select_layers(wanted)


def test_prepare_rounds_half_to_even_and_clips():
    graph = Graph(
        tensors=[Tensor("x", 1, 1, 2, 2.0, 1), Tensor("y", 1, 1, 2, 1.0, 0)],
        ops=[
            Op(
                "fully_connected",
                "head",
                (0,),
                1,
                weights=np.zeros((2, 2), np.int8),
                bias=np.zeros(2, np.int32),
                weight_scales=np.ones(2, np.float32),
            )
        ],
        input=0,
        output=1,
        input_mean=(0.0, 255.0),
        input_std=(1.0, 0.5),
    )
    model = pmt.Model.from_graph(graph)
    image = np.array([[[[1, 255]]], [[[3, 254]]], [[[255, 0]]]], np.uint8)
    # channel 0: p / 2 + 1 with halves to even; channel 1: (p - 255) / 0.5 / 2 + 1
    assert model.prepare(image).reshape(3, 2).tolist() == [[1, 1], [3, 0], [127, -128]]


def test_set_parameters_checks_shapes():
    model = smooth_network()
    with pytest.raises(ValueError, match="weights and bias must have the layer's shapes"):
        model.core.set_parameters(0, np.zeros((4, 3, 3), np.int8), np.zeros(4, np.int32))
    with pytest.raises(TypeError, match="weights must be a C-contiguous NumPy array of int8"):
        model.core.set_parameters(0, np.zeros((4, 3, 3, 3)), np.zeros(4, np.int32))
    with pytest.raises(ValueError, match="op 9 is not a layer with weights"):
        model.core.weights(9)


def test_evaluation_counts_and_averages():
    model = residual_network()
    images = pixels(model, 6)
    predicted = model.logits(images).argmax(axis=1)
    right = pmt.datasets.Dataset(images, predicted, tuple("abcd"), "right")
    assert model.evaluate(right).accuracy == 1.0
    wrong = pmt.datasets.Dataset(images, (predicted + 1) % 4, tuple("abcd"), "wrong")
    evaluation = model.evaluate(wrong)
    assert evaluation.accuracy == 0.0
    assert evaluation.n == 6
    logits = model.logits(images).astype(np.float64)
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(6), (predicted + 1) % 4]
    assert evaluation.loss == pytest.approx(losses.mean(), abs=1e-5)


def deep_network(ops: int, *, residual: bool) -> Model:
    """Return a chain of 1x1 convolutions; residual, every third op is an addition."""
    tensors = [Tensor("input", 8, 8, 4, 0.1, 0)]
    built: list[Op] = []
    while len(built) < ops:
        source, index = len(tensors) - 1, len(built)
        last = index == ops - 1
        tensors.append(Tensor(f"t{index}", 8, 8, 3 if last else 4, 0.1, 0))
        if residual and index % 3 == 2 and not last:
            built.append(Op("add", f"op{index}", (source, source - 2), source + 1))
            continue
        channels = tensors[-1].channels
        weights = np.ones((channels, 1, 1, 4), np.int8)
        scales = np.full(channels, 0.01, np.float32)
        conv = Op("conv2d", f"op{index}", (source,), source + 1)
        conv.weights, conv.weight_scales = weights, scales
        built.append(conv)
    layers = [index for index, op in enumerate(built) if op.kind == "conv2d"]
    blocks = {"all": layers, "head": layers[-1:]}
    graph = Graph(tensors, built, 0, ops, (0.0,) * 4, (1.0,) * 4, blocks)
    return Model.from_graph(graph)


@pytest.mark.alone
@pytest.mark.parametrize("ops", [256, 1000])
@pytest.mark.parametrize("residual", [False, True])
def test_info_of_many_ops_takes_less_than_two_seconds(tmp_path, capsys, ops, residual):
    path = tmp_path / "deep.pmt"
    deep_network(ops, residual=residual).save(path)
    start = time.process_time()
    assert main(["info", str(path)]) == 0
    assert time.process_time() - start < 2
    training = capsys.readouterr().out.splitlines()[-1]
    peaks = {(256, False): 816, (256, True): 1072, (1000, False): 816, (1000, True): 1328}
    assert training.startswith(f"training  {peaks[ops, residual]:,} bytes of activations, ")


def with_end(zero_point: int, clamp: tuple[int, int]) -> Model:
    """Two sums of the three inputs, 20 and -10 steps of 0.5 for inputs of 1, 2 and 3."""
    layer = {
        "weights": np.array([[5, 3, 3], [-5, -1, -1]], np.int8),
        "bias": np.array([0, 0], np.int32),
        "weight_scales": np.full(2, 0.5, np.float32),
    }
    tensors = [Tensor("input", 1, 1, 3, 1.0, 0), Tensor("logits", 1, 1, 2, 0.5, zero_point)]
    ops = [Op("fully_connected", "head", (0,), 1, clamp=clamp, **layer)]
    return Model.from_graph(Graph(tensors, ops, 0, 1, (0.0,) * 3, (1.0,) * 3, {"head": [0]}, {}))


@pytest.mark.parametrize(
    ("zero_point", "clamp", "expected"),
    [
        (0, (-128, 127), [10.0, -5.0]),
        (-127, (-128, 127), [10.0, -5.0]),
        (-128, (-128, 127), [10.0, 0.0]),  # ReLU
        (0, (0, 127), [10.0, 0.0]),
        (-128, (-128, -116), [6.0, 0.0]),  # ReLU6
    ],
)
def test_logits_pass_an_activation_behind_the_last_layer(zero_point, clamp, expected):
    model = with_end(zero_point, clamp)
    images = np.array([[[[1, 2, 3]]]], np.int8)
    assert model.logits(images).tolist() == [expected]
    assert model.outputs(images).tolist() == [expected]
    engine = pmt.Engine(model, "head")
    assert engine.logits(images).tolist() == [expected]
    none = np.zeros((1, 2, 3), np.int8)
    assert engine.logits(images, "head", none).tolist() == [[expected]]
