"""Archives of tiny-training: MCUNet, and the family against the formulas of its simulation."""

import csv
import zlib
from typing import Any

import emulator
import numpy as np
import pytest
from tiny_training_builder import FAMILY, saved, small_network

from pmt.formats import tiny_training
from pmt.formats.tiny_training import matching_weight_scales
from pmt.model import Model
from pmt.net.image import build_image, read_graph


@pytest.fixture(scope="module")
def mcunet(mcunet_path):
    return tiny_training.read(mcunet_path)


def pseudo_random_int8(count: int) -> np.ndarray:
    """int8(s >> 9) along XORShift32 (13, 17, 5) from 12345, as the golden outputs use it."""
    values = np.empty(count, np.int64)
    state = 12345
    for i in range(count):
        state ^= state << 13 & 0xFFFFFFFF
        state ^= state >> 17
        state ^= state << 5 & 0xFFFFFFFF
        values[i] = state
    return (values >> 9).astype(np.uint8).view(np.int8)


def test_mcunet_has_the_published_size(mcunet):
    layers = [op for op in mcunet.ops if op.weights is not None]
    macs = sum(
        op.weights.size // mcunet.tensors[op.output].channels * mcunet.tensors[op.output].elements
        for op in layers
        if op.weights is not None
    )
    assert len(layers) == 43
    assert macs == 22_613_504
    weights = [op.weights for op in layers if op.weights is not None]
    assert sum(w.size for w in weights[:-1]) == 463_216
    assert min(int(w.min()) for w in weights) == -127
    assert mcunet.tensors[mcunet.output].channels == 1000


def test_mcunet_names_and_blocks(mcunet):
    names = [op.name for op in mcunet.ops]
    assert names[:4] == ["first_conv", "b0.depthwise", "b0.pointwise2", "b1.pointwise1"]
    assert names[-2:] == ["avgpool", "classifier"]
    assert [name for name in names if name.endswith(".add")] == [
        f"b{i}.add" for i in (2, 4, 6, 8, 9, 11, 12)
    ]
    blocks = {name: [names[i] for i in layers] for name, layers in mcunet.blocks.items()}
    assert blocks["B1"] == ["first_conv", "b1.pointwise1", "b2.pointwise1", "b3.pointwise1"]
    assert blocks["B2"] == [f"b{i}.pointwise1" for i in (4, 5, 6, 7)]
    assert blocks["B3"] == [f"b{i}.pointwise1" for i in (8, 9, 10)]
    assert blocks["B4"] == [f"b{i}.pointwise1" for i in (11, 12, 13)]
    assert blocks["paper14"] == blocks["B1"] + blocks["B2"] + blocks["B3"] + blocks["B4"]
    assert blocks["head"] == ["classifier"]
    assert len(blocks["all"]) == 43


def test_mcunet_residual_adds_the_block_input(mcunet):
    names = [op.name for op in mcunet.ops]
    add = mcunet.ops[names.index("b2.add")]
    assert add.inputs == (
        mcunet.ops[names.index("b1.pointwise2")].output,
        mcunet.ops[names.index("b2.pointwise2")].output,
    )
    tensor = mcunet.tensors[add.output]
    assert tensor.scale == pytest.approx(0.10652235816506779, rel=1e-12)
    assert tensor.zero_point == 12


def test_dead_channels_pass_through(mcunet):
    first = mcunet.ops[0]
    dead = first.weight_scales < 1e-6
    assert dead.sum() == 2
    assert first.bias.min() == -(2**31)


def test_pixels_become_pixel_minus_128(mcunet):
    pixels = np.arange(256, dtype=np.uint8).reshape(1, 16, 16, 1).repeat(3, axis=3)
    quantized = emulator.quantize_pixels(mcunet, pixels)
    np.testing.assert_array_equal(quantized, pixels.astype(int) - 128)


def test_all_43_layers_equal_the_golden_outputs(mcunet, shared):
    with (shared / "golden" / "mcunet_layers.csv").open() as file:
        golden = list(csv.DictReader(file))
    layers = [op for op in mcunet.ops if op.weights is not None]
    # The image is what runs: the scales must survive float32.
    stored = read_graph(build_image(mcunet))
    inputs = pseudo_random_int8(64 * 64 * 32)
    assert len(golden) == len(layers) == 43
    for row, layer in zip(golden, layers, strict=True):
        source = stored.tensors[layer.inputs[0]]
        shape = (source.height, source.width, source.channels)
        assert shape == (int(row["in_h"]), int(row["in_w"]), int(row["in_c"]))
        output = emulator.run_op(stored, layer, [inputs[: source.elements].reshape(1, *shape)])
        assert output.ravel()[:8].tolist() == [int(row[f"y{i}"]) for i in range(8)], layer.name
        assert zlib.crc32(output.tobytes()) == int(row["crc32"], 16), layer.name


def test_weight_scales_move_by_two_units_at_most(mcunet):
    scales = np.random.default_rng(3).uniform(1e-4, 1e-1, 2000).astype(np.float32)
    matched = matching_weight_scales(scales, 0.02352941176, 0.0757206898)
    distance = np.abs(matched.view(np.int32) - scales.view(np.int32))
    assert distance.max() <= 2
    wanted = (0.02352941176 * scales.astype(np.float64) / 0.0757206898).astype(np.float32)

    def exact(values: np.ndarray) -> float:
        product = np.float32(0.02352941176) * values / np.float32(0.0757206898)
        return float((product == wanted).mean())

    assert exact(matched) > exact(scales) + 0.05
    unmatched = np.float32(0.02352941176) * matched / np.float32(0.0757206898) != wanted
    np.testing.assert_array_equal(matched[unmatched], scales[unmatched])


@pytest.mark.parametrize("resolution", [32, 96, 100, 160])
def test_other_resolutions(mcunet_path, resolution):
    graph = tiny_training.read(mcunet_path, resolution=resolution)
    build_image(graph)
    first = graph.tensors[graph.ops[0].output]
    assert (first.height, first.width) == (resolution // 2,) * 2
    last = graph.tensors[graph.ops[-2].inputs[0]]
    assert last.height == -(-resolution // 32)


@pytest.mark.parametrize(
    ("option", "error", "message"),
    [
        ({"resolution": 16}, ValueError, r"resolution=16 must be 32\.\.512"),
        ({"resolution": True}, TypeError, r"resolution=True must be an integer"),
    ],
)
def test_options_are_checked(tmp_path, option, error, message):
    path = saved(tmp_path / "net.pkl", small_network())
    with pytest.raises(error, match=message):
        tiny_training.read(path, **option)


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_small_network_of_any_protocol(tmp_path, protocol):
    network = small_network()
    graph = tiny_training.read(saved(tmp_path / "net.pkl", network, protocol), resolution=32)
    assert [op.name for op in graph.ops] == [
        "first_conv",
        "b0.pointwise1",
        "b0.depthwise",
        "b0.pointwise2",
        "b0.add",
        "avgpool",
        "classifier",
    ]
    assert "paper14" not in graph.blocks
    stored = network["first_conv"]["params"]["weight"]
    weights = graph.ops[0].weights
    assert weights[2, 0, 1, 2] == stored[2, 2, 0, 1]
    depthwise = graph.ops[2].weights
    kernels = network["blocks"][0]["depthwise"]["params"]["weight"]
    assert depthwise[0, 2, 5] == kernels[5, 0, 0, 2]


FIRST, HEAD, BLOCK = ("first_conv",), ("classifier", "params"), ("blocks", 0)
DEPTHWISE = (*BLOCK, "depthwise")
SHORT = ((*HEAD, "bias"), np.zeros(3, np.int32))
DOUBLE = ((*DEPTHWISE, "params", "bias"), np.zeros(8, np.float64))


# What is set where in a small network, and the refusal.
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([(("blocks",), {"0": 1})], r"net\.pkl: 'blocks' must be a list"),
        ([SHORT], r"classifier, params: 'bias' is int32 of shape \(3,\), expected int32 of"),
        ([((*FIRST, "params", "weight"), np.ones((8, 3, 3, 3), np.float32))],
            r"first_conv, params: 'weight' is float32 of shape"),
        ([((*FIRST, "params", "y_scale"), float("nan"))],
            r"'y_scale' is nan, expected a positive number"),
        ([((*HEAD, "w_scales"), np.full(5, -1, np.float32))],
            r"'w_scales' must be positive and finite"),
        ([((*DEPTHWISE, "groups"), 3)], r"depthwise: 'groups' 3 must divide 8 and 8 channels"),
        ([((*FIRST, "kernel_size"), (3, 3, 3))],
            r"'kernel_size' is a tuple, expected one or two numbers from 1 to 15"),
        ([((*FIRST, "kernel_size"), 16)],
            r"'kernel_size' is 16, expected one or two numbers from 1 to 15"),
        ([((*FIRST, "act"), "swish")],
            r"first_conv: 'act' is 'swish', but activations are part of the int8 range"),
        ([((*FIRST, "act"), "relu")], r"'act' is 'relu', .*use relu or relu6 with 'y_zero' -128"),
        ([((*DEPTHWISE, "stride"), 2)],
            r"blocks\[0\], residual: 'params' adds \(128, 128, 4\) to \(64, 64, 4\)"),
        ([SHORT, DOUBLE],
            r"depthwise, params: 'bias' is float64 .*; .*classifier, params: 'bias' is"),
        ([((*HEAD, "bias"), np.full(5, 2**31))],
            r"classifier, params: 'bias' holds values beyond int32"),
        ([((*BLOCK, "se"), {})], r"'se' is set: squeeze-and-excitation is not supported"),
        ([((*BLOCK, "pointwise2", "params", "x_scale"), 0.5)],
            r"b0\.pointwise2: expects its input with scale .* contradicts"),
        ([((*FIRST, "params", "y_zero"), 128)],
            r"'y_zero' is 128, expected an integer in \[-128, 127\]"),
    ],
)  # fmt: skip
def test_wrong_structure_says_where(tmp_path, changes, message):
    network = small_network()
    for place, value in changes:
        node: Any = network
        for key in place[:-1]:
            node = node[key]
        node[place[-1]] = value
    with pytest.raises(ValueError, match=message):
        tiny_training.read(saved(tmp_path / "net.pkl", network))


def test_a_key_that_is_missing_is_named(tmp_path):
    network = small_network()
    del network["blocks"][0]["depthwise"]["params"]
    with pytest.raises(ValueError, match=r"net\.pkl, blocks\[0\], depthwise: 'params' is missing"):
        tiny_training.read(saved(tmp_path / "net.pkl", network))


def test_something_else_than_a_network(tmp_path):
    with pytest.raises(ValueError, match=r"net\.pkl: is a list, expected a dict"):
        tiny_training.read(saved(tmp_path / "net.pkl", [1, 2]))
    with pytest.raises(ValueError, match="'first_conv' is missing; this is not a tiny-training"):
        tiny_training.read(saved(tmp_path / "net.pkl", {"weights": 1}))


def test_arrays_in_fortran_order(tmp_path):
    network = small_network()
    params = network["first_conv"]["params"]
    params["weight"] = np.asfortranarray(params["weight"])
    graph = tiny_training.read(saved(tmp_path / "net.pkl", network))
    np.testing.assert_array_equal(graph.ops[0].weights, params["weight"].transpose(0, 2, 3, 1))


def simulated(network: dict[str, Any], image: np.ndarray) -> dict[str, np.ndarray]:
    """Every activation, channels first, as the project's simulation computes it."""
    values = {"input": image.astype(np.float64)}
    x = convolve(network["first_conv"], values["input"])
    values["first_conv"] = x
    for number, block in enumerate(network["blocks"]):
        start = x
        for part in ("pointwise1", "depthwise", "pointwise2"):
            if block.get(part) is not None:
                x = convolve(block[part], x)
                last = block[part]["params"]
                values[f"b{number}.{part}"] = x
        residual = block.get("residual")
        if residual is not None:
            params = residual["params"]
            scale, zero, out, zero_out = (
                params[k] for k in ("x_scale", "x_zero", "y_scale", "y_zero")
            )
            if "kernel_size" in residual:
                start = convolve(residual, start)
                values[f"b{number}.residual"] = start
                scale, zero, out, zero_out = (
                    params[k] for k in ("y_scale", "y_zero", "out_scale", "out_zero")
                )
            total = (start - zero) * scale + (x - last["y_zero"]) * last["y_scale"]
            x = np.clip(np.rint(total / out) + zero_out, -128, 127)
            values[f"b{number}.add"] = x
    if network.get("feature_mix") is not None:
        x = convolve(network["feature_mix"], x)
        values["feature_mix"] = x
    x = np.rint(x.mean((1, 2), keepdims=True))
    values["avgpool"] = x
    values["classifier"] = convolve(network["classifier"], x)
    return values


def convolve(layer: dict[str, Any], x: np.ndarray) -> np.ndarray:
    """Channels-first convolution with padding (k - 1) // 2 on each side."""
    params, groups = layer["params"], layer["groups"]
    kernel = layer["kernel_size"]
    kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
    stride = layer["stride"]
    stride = (stride, stride) if isinstance(stride, int) else stride
    pads = [((k - 1) // 2,) * 2 for k in kernel]
    centered = np.pad(x - params["x_zero"], ((0, 0), *pads))
    windows = np.lib.stride_tricks.sliding_window_view(centered, kernel, axis=(1, 2))
    windows = windows[:, :: stride[0], :: stride[1]]
    weights = params["weight"].astype(np.float64)
    inner, outer = weights.shape[1], len(weights) // groups
    sums = np.concatenate(
        [
            np.einsum(
                "chwij,ocij->ohw",
                windows[g * inner : (g + 1) * inner],
                weights[g * outer : (g + 1) * outer],
            )
            for g in range(groups)
        ]
    )
    scale = params["x_scale"] * params["w_scales"].astype(np.float64) / params["y_scale"]
    real = (sums + params["bias"][:, None, None]) * scale[:, None, None]
    return np.clip(np.rint(real) + params["y_zero"], -128, 127)


@pytest.mark.parametrize("name", FAMILY)
def test_every_activation_equals_the_simulation(tmp_path, name):
    network = FAMILY[name]()
    graph = tiny_training.read(saved(tmp_path / "net.pkl", network), resolution=32)
    image = np.random.default_rng(2).integers(-128, 128, (32, 32, 3)).astype(np.int8)
    activations = Model.from_graph(graph).core.activations(image)
    expected = simulated(network, image.transpose(2, 0, 1))
    assert [op.name for op in graph.ops] == list(expected)[1:]
    for tensor, values in zip(graph.tensors, activations, strict=True):
        wanted = expected[tensor.name].transpose(1, 2, 0)
        assert values.shape == wanted.shape
        # Equal but for products that lie on a rounding tie in one precision and not in the other,
        # and what follows from such a step in later layers.
        steps = np.abs(values - wanted)
        assert steps.max() <= 1
        assert (steps > 0).mean() <= 0.01, tensor.name
    assert activations[-1].std() > 5


def test_groups_that_are_not_depthwise_are_dense(tmp_path):
    graph = tiny_training.read(saved(tmp_path / "net.pkl", FAMILY["grouped"]()), resolution=32)
    weights = {op.name: op.weights for op in graph.ops if op.weights is not None}
    assert weights["b0.pointwise1"].shape == (8, 3, 3, 4)
    np.testing.assert_array_equal((weights["b0.pointwise1"] != 0).any((1, 2))[:, [0, 2]],
        [[True, False]] * 4 + [[False, True]] * 4,
    )  # fmt: skip
    assert weights["b0.depthwise"].shape == (3, 3, 16)


def test_blocks_of_networks_that_do_not_expand(tmp_path):
    graph = tiny_training.read(saved(tmp_path / "net.pkl", FAMILY["separable"]()), resolution=32)
    names = {block: [graph.ops[i].name for i in layers] for block, layers in graph.blocks.items()}
    assert names["B1"] == ["first_conv", "b0.depthwise"]
    assert names["head"] == ["classifier"]
    assert len(names["all"]) == 6


def test_numbers_stored_as_arrays_and_wider_types(tmp_path):
    plain = FAMILY["residual convolution"]()
    wide = FAMILY["residual convolution"]()
    params = wide["first_conv"]["params"]
    params["x_scale"] = np.array(params["x_scale"])
    params["y_zero"] = np.array([params["y_zero"]])
    params["w_scales"] = params["w_scales"].astype(np.float64)
    params["bias"] = params["bias"].astype(np.int64)
    first, second = (
        tiny_training.read(saved(tmp_path / f"{i}.pkl", network), resolution=32)
        for i, network in enumerate((plain, wide))
    )
    assert first.tensors == second.tensors
    np.testing.assert_array_equal(first.ops[0].bias, second.ops[0].bias)
    np.testing.assert_array_equal(first.ops[0].weight_scales, second.ops[0].weight_scales)


def test_groups_do_not_outgrow_the_archive(tmp_path, monkeypatch):
    monkeypatch.setattr(tiny_training, "_MOST_WEIGHTS", 300)
    path = saved(tmp_path / "net.pkl", FAMILY["grouped"]())
    with pytest.raises(ValueError, match=r"'groups' 2: all weights with zeros for groups pass 300"):
        tiny_training.read(path, resolution=32)


def test_scales_beyond_the_limits_of_an_image(tmp_path):
    network = FAMILY["grouped"]()
    network["first_conv"]["params"]["x_scale"] = 1e-20
    network["classifier"]["params"]["y_scale"] = 1e9
    with pytest.raises(ValueError, match=r"^net\.pkl: beyond the limits of an image: ") as caught:
        tiny_training.read(saved(tmp_path / "net.pkl", network), resolution=32)
    assert "tensor 'input' has scale 1e-20" in str(caught.value)
    assert "tensor 'classifier' has scale 1000000000.0" in str(caught.value)
