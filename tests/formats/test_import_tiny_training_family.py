"""Archives of the tiny-training family, against the formulas of its simulation, written anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_training_builder import FAMILY, saved

from pmt.formats import tiny_training
from pmt.model import Model

Array = np.ndarray


def simulated(network: dict[str, Any], image: Array) -> dict[str, Array]:
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


def convolve(layer: dict[str, Any], x: Array) -> Array:
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
def test_every_activation_equals_the_simulation(tmp_path: Path, name: str) -> None:
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


def test_groups_that_are_not_depthwise_are_dense(tmp_path: Path) -> None:
    graph = tiny_training.read(saved(tmp_path / "net.pkl", FAMILY["grouped"]()), resolution=32)
    weights = {op.name: op.weights for op in graph.ops if op.weights is not None}
    assert weights["b0.pointwise1"].shape == (8, 3, 3, 4)
    np.testing.assert_array_equal((weights["b0.pointwise1"] != 0).any((1, 2))[:, [0, 2]],
        [[True, False]] * 4 + [[False, True]] * 4,
    )  # fmt: skip
    assert weights["b0.depthwise"].shape == (3, 3, 16)


def test_blocks_of_networks_that_do_not_expand(tmp_path: Path) -> None:
    graph = tiny_training.read(saved(tmp_path / "net.pkl", FAMILY["separable"]()), resolution=32)
    names = {block: [graph.ops[i].name for i in layers] for block, layers in graph.blocks.items()}
    assert names["B1"] == ["first_conv", "b0.depthwise"]
    assert names["head"] == ["classifier"]
    assert len(names["all"]) == 6


def test_numbers_stored_as_arrays_and_wider_types(tmp_path: Path) -> None:
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


def test_groups_do_not_outgrow_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiny_training, "_MOST_WEIGHTS", 300)
    path = saved(tmp_path / "net.pkl", FAMILY["grouped"]())
    with pytest.raises(ValueError, match=r"'groups' 2: all weights with zeros for groups pass 300"):
        tiny_training.read(path, resolution=32)


def test_scales_beyond_the_limits_of_an_image(tmp_path: Path) -> None:
    network = FAMILY["grouped"]()
    network["first_conv"]["params"]["x_scale"] = 1e-20
    network["classifier"]["params"]["y_scale"] = 1e9
    with pytest.raises(ValueError, match=r"^net\.pkl: beyond the limits of an image: ") as caught:
        tiny_training.read(saved(tmp_path / "net.pkl", network), resolution=32)
    assert "tensor 'input' has scale 1e-20" in str(caught.value)
    assert "tensor 'classifier' has scale 1000000000.0" in str(caught.value)
