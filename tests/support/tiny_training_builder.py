"""Writes small tiny-training archives for the tests of the importer."""

import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Quantization = tuple[float, int]


def stored_layer(
    weights: np.ndarray, bias: np.ndarray, scales: np.ndarray, source: Quantization,
    target: Quantization, *, kernel: Any, stride: Any = 1, groups: int = 1, act: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """A layer as an archive holds it, weights (out, in / groups, height, width)."""
    params = {"weight": weights.astype(np.int8), "bias": bias.astype(np.int32)}
    params |= {"w_scales": scales.astype(np.float32)} | link(source, target)
    channels = {"in_channel": weights.shape[1] * groups, "out_channel": len(weights)}
    window = {"kernel_size": kernel, "stride": stride, "groups": groups}
    return {**channels, **window, "act": act, "params": params}


def link(source: Quantization, target: Quantization) -> dict[str, Any]:
    names = ("x_scale", "x_zero", "y_scale", "y_zero")
    return dict(zip(names, (*source, *target), strict=True))


def convolution(inputs: int, outputs: int, *, kernel: int = 1, groups: int = 1) -> dict[str, Any]:
    shape, same = (outputs, inputs // groups, kernel, kernel), (2 / 255, 0)
    weights = (np.arange(np.prod(shape)) % 200 - 100).reshape(shape)
    rest = (np.arange(outputs), np.full(outputs, 0.01), same, same)
    return stored_layer(weights, *rest, kernel=(kernel, kernel), groups=groups)


def small_network() -> dict[str, Any]:
    block = {
        "pointwise1": convolution(4, 8),
        "depthwise": convolution(8, 8, kernel=3, groups=8),
        "pointwise2": convolution(8, 4),
        "residual": {"params": link((2 / 255, 0), (2 / 255, 0))},
        "se": None,
    }
    return {
        "first_conv": convolution(3, 4, kernel=3),
        "blocks": [block],
        "feature_mix": None,
        "classifier": convolution(4, 5),
    }


class FamilyBuilder:
    """Layers with random weights whose scales meet, for networks of other structures."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.channels = 3
        self.quantization = (2 / 255, 0)

    def layer(
        self,
        outputs: int,
        kernel: int | tuple[int, int] = 1,
        *,
        stride: int | tuple[int, int] = 1,
        groups: int = 1,
        relu: bool = False,
        gain: float = 1.0,
    ) -> dict[str, Any]:
        """A convolution of the current activation, which becomes its output."""
        height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
        inner = self.channels // groups
        source, scale = self.quantization, float(self.rng.uniform(0.02, 0.03))
        target = scale, -128 if relu else int(self.rng.integers(-20, 20))
        spread = 73 * 73 * source[0] * (inner * height * width) ** 0.5
        scales = gain * 40 * scale / spread * self.rng.uniform(0.5, 1.5, outputs)
        weights = self.rng.integers(-127, 128, (outputs, inner, height, width))
        bias = self.rng.integers(-900, 900, outputs)
        self.channels, self.quantization = outputs, target
        window = {"kernel": kernel, "stride": stride, "groups": groups}
        act = "relu6" if relu else None
        return stored_layer(weights, bias, scales, source, target, **window, act=act)

    def identity(self, start: tuple[float, int]) -> dict[str, Any]:
        """The residual of a block that began with quantization ``start``."""
        self.quantization = 0.04, 7
        return {"params": link(start, self.quantization)}

    def projection(self, start: tuple[float, int], channels: int, stride: int) -> dict[str, Any]:
        """A residual with a convolution of the block's input."""
        outputs = self.channels
        self.channels, self.quantization = channels, start
        made = self.layer(outputs, stride=stride)
        self.quantization = 0.05, -9
        made["params"]["out_scale"], made["params"]["out_zero"] = self.quantization
        return made


def mobile_network() -> dict[str, Any]:
    """Inverted residuals with kernels of 3, 5 and 7, strides in all places, a feature mix."""
    b = FamilyBuilder(1)
    network: dict[str, Any] = {"first_conv": b.layer(8, 3, stride=2, relu=True), "blocks": []}
    for kernel, stride in ((3, 1), (5, 2), (7, 1)):
        start = b.quantization
        block = {
            "pointwise1": b.layer(16, relu=True),
            "depthwise": b.layer(16, kernel, stride=stride, groups=16, relu=True),
            "pointwise2": b.layer(8),
            "residual": None,
            "se": None,
        }
        if stride == 1:
            block["residual"] = b.identity(start)
        network["blocks"].append(block)
    return {**network, "feature_mix": b.layer(24, relu=True), "classifier": b.layer(6, gain=12)}


def separable_network() -> dict[str, Any]:
    """Depthwise and pointwise in turns; keys that are not needed are missing."""
    b = FamilyBuilder(2)
    network: dict[str, Any] = {"first_conv": b.layer(4, (3, 5), stride=(2, 1)), "blocks": []}
    for stride in (1, 2):
        depthwise = b.layer(b.channels, 3, stride=stride, groups=b.channels)
        network["blocks"].append({"depthwise": depthwise, "pointwise2": b.layer(8)})
    return {**network, "classifier": b.layer(5, gain=12)}


def residual_network() -> dict[str, Any]:
    """Two convolutions a block, residuals with and without a convolution, even kernels."""
    b = FamilyBuilder(3)
    network: dict[str, Any] = {"first_conv": b.layer(4, 4, stride=2), "blocks": []}
    for outputs, stride in ((4, 1), (8, 2)):
        start, channels = b.quantization, b.channels
        block = {
            "pointwise1": b.layer(outputs, 3, stride=stride, relu=True),
            "depthwise": None,
            "pointwise2": b.layer(outputs, 3),
        }
        same = stride == 1
        block["residual"] = b.identity(start) if same else b.projection(start, channels, stride)
        network["blocks"].append(block)
    return {**network, "feature_mix": None, "classifier": b.layer(5, gain=12)}


def grouped_network() -> dict[str, Any]:
    """Groups of two channels, and a depthwise layer with two outputs for each channel."""
    b = FamilyBuilder(6)
    first = b.layer(4, 2, stride=2)
    block = {
        "pointwise1": b.layer(8, 3, groups=2),
        "depthwise": b.layer(16, 3, groups=8),
        "pointwise2": None,
        "residual": None,
    }
    return {
        "first_conv": first,
        "blocks": [block],
        "feature_mix": None,
        "classifier": b.layer(3, gain=30),
    }


FAMILY: dict[str, Callable[[], dict[str, Any]]] = {
    "mobile": mobile_network,
    "separable": separable_network,
    "residual convolution": residual_network,
    "grouped": grouped_network,
}


def archive(path: Path, content: bytes, *, method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        file.writestr("archive/data.pkl", content)
        file.writestr("archive/version", b"3\n")
    return path


def saved(path: Path, network: object, protocol: int = 2) -> Path:
    return archive(path, pickle.dumps(network, protocol=protocol))
