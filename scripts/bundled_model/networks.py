"""The two networks that start from random weights, as float graphs."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pmt.formats.layers import consecutive_blocks, same_sides
from pmt.net.float_graph import Activation
from pmt.net.graph import is_layer
from pmt.net.ops import OpKind
from pmt.quantization import FloatGraph, FloatOp, FloatTensor

Floats = npt.NDArray[np.float32]
# Of a shape, and the number of outputs that a weight reaches.
Weights = Callable[[tuple[int, ...], int], Floats]


class Layer(NamedTuple):
    """A convolution of the Fashion-MNIST network; depthwise without ``outputs``."""

    name: str
    block: str
    kernel: int
    outputs: int | None = None
    stride: int = 1
    activation: Activation = "relu6"
    residual_from: str = ""  # the layer whose output is added to this one's


# As in MobileNetV2, the projection of the residual branch is linear.
LAYERS = (
    Layer("conv1", "B1", 3, 16, stride=2),
    Layer("depthwise1", "B1", 3),
    Layer("pointwise1", "B1", 1, 32),
    Layer("depthwise2", "B2", 3, stride=2),
    Layer("pointwise2", "B2", 1, 64, activation="none"),
    Layer("expand3", "B3", 1, 128),
    Layer("depthwise3", "B3", 3),
    Layer("project3", "B3", 1, 64, activation="none", residual_from="pointwise2"),
    Layer("depthwise4", "B4", 3),
    Layer("pointwise4", "B4", 1, 128),
)


class Bottleneck(NamedTuple):
    """Expand (unless ``expanded`` equals the input), depthwise, project; residual where it fits."""

    expanded: int
    outputs: int
    kernel: int = 3
    stride: int = 1


BOTTLENECKS = (
    Bottleneck(16, 16),
    Bottleneck(48, 24, stride=2),
    Bottleneck(72, 24),
    Bottleneck(72, 40, stride=2),
    Bottleneck(160, 40, kernel=5),
    Bottleneck(160, 64),
    Bottleneck(192, 64),
    Bottleneck(192, 96, stride=2),
    Bottleneck(384, 96),
)


def fashion_mnist_graph(classes: int) -> FloatGraph:
    """Return ``LAYERS``, a global mean and a linear head for 28x28 gray images; weights are 0.

    Padding is TFLite's SAME: the odd pixel goes after.
    """
    # The int8 input is then the pixel - 128.
    builder = _Builder("image", 28, 1, (0.0, 255.0), lambda shape, _: np.zeros(shape, np.float32))
    outputs: dict[str, int] = {}
    blocks: dict[str, list[int]] = {}
    for layer in LAYERS:
        before, after = same_sides(builder.side, layer.kernel, layer.stride)
        blocks.setdefault(layer.block, []).append(len(builder.graph.ops))
        builder.convolution(
            layer.name,
            layer.outputs,
            layer.kernel,
            layer.stride,
            (before, before, after, after),
            layer.activation,
        )
        if layer.residual_from:
            builder.add(f"{layer.name}_add", outputs[layer.residual_from])
        outputs[layer.name] = builder.graph.output
    builder.mean("mean")
    blocks["head"] = [len(builder.graph.ops)]
    builder.dense("head", classes)
    blocks["all"] = sorted(index for layers in blocks.values() for index in layers)
    builder.graph.blocks = blocks
    return builder.graph


def small_graph(classes: int) -> FloatGraph:
    """Return a network of MCUNet's family for 32x32 images: kernels of 3 and 5, a head of zeros.

    Weights are random (He et al. 2015, fan-out) with seed 0; blocks are named as the importer of
    MCUNet names them.
    """
    generator = np.random.default_rng(0)

    def random(shape: tuple[int, ...], fan: int) -> Floats:
        return generator.normal(0.0, np.sqrt(2.0 / fan), shape).astype(np.float32)

    builder = _Builder("input", 32, 3, (128.0, 128.0), random)
    graph = builder.graph
    builder.convolution("first_conv", 16, 3, 1, (1,) * 4, "relu6")
    for number, block in enumerate(BOTTLENECKS):
        name, before = f"b{number}", graph.output
        if block.expanded != builder.channels:
            builder.convolution(f"{name}.pointwise1", block.expanded, activation="relu6")
        padding = (block.kernel // 2,) * 4
        depthwise = (f"{name}.depthwise", None, block.kernel, block.stride, padding)
        builder.convolution(*depthwise, "relu6")
        builder.convolution(f"{name}.pointwise2", block.outputs)
        if graph.tensors[before].shape == graph.tensors[graph.output].shape:
            builder.add(f"{name}.add", before)
    builder.mean("avgpool")
    builder.convolution("classifier", classes)
    graph.ops[-1].weights[:] = 0.0
    layers = [i for i, op in enumerate(graph.ops) if is_layer(op)]
    wide = [i for i in layers if graph.ops[i].name.endswith(("first_conv", "pointwise1"))]
    graph.blocks = {**consecutive_blocks(wide), "head": layers[-1:], "all": layers}
    return graph


class _Builder:
    """A graph that grows by one op after the other."""

    def __init__(
        self, name: str, side: int, channels: int, scaling: tuple[float, float], weights: Weights
    ) -> None:
        mean, std = ((value,) * channels for value in scaling)
        self.graph = FloatGraph([FloatTensor(name, side, side, channels)], [], 0, 0, mean, std)
        self._weights = weights

    @property
    def side(self) -> int:
        return self.graph.tensors[self.graph.output].height

    @property
    def channels(self) -> int:
        return self.graph.tensors[self.graph.output].channels

    def convolution(
        self,
        name: str,
        outputs: int | None,
        kernel: int = 1,
        stride: int = 1,
        padding: tuple[int, int, int, int] = (0, 0, 0, 0),
        activation: Activation = "none",
    ) -> None:
        """Append a convolution, depthwise without ``outputs``."""
        kind: OpKind = "depthwise_conv2d" if outputs is None else "conv2d"
        shape: tuple[int, ...] = (kernel, kernel, self.channels)
        fan = kernel * kernel
        if outputs is not None:
            shape, fan = (outputs, *shape), outputs * fan
        count = outputs or self.channels
        op = FloatOp(kind, name, (self.graph.output,), 0, (kernel, kernel), (stride, stride))
        op.padding, op.activation = padding, activation
        op.weights, op.bias = self._weights(shape, fan), np.zeros(count, np.float32)
        side = (self.side + padding[0] + padding[2] - kernel) // stride + 1
        self._append(op, (side, side, count))

    def dense(self, name: str, outputs: int) -> None:
        """Append a fully connected layer."""
        op = FloatOp("fully_connected", name, (self.graph.output,), 0)
        op.weights = self._weights((outputs, self.channels), outputs)
        op.bias = np.zeros(outputs, np.float32)
        self._append(op, (1, 1, outputs))

    def add(self, name: str, source: int) -> None:
        """Add an earlier activation to the newest."""
        op = FloatOp("add", name, (source, self.graph.output), 0)
        self._append(op, self.graph.tensors[source].shape)

    def mean(self, name: str) -> None:
        """Append the mean over all positions."""
        self._append(FloatOp("mean", name, (self.graph.output,), 0), (1, 1, self.channels))

    def _append(self, op: FloatOp, shape: tuple[int, int, int]) -> None:
        op.output = self.graph.output = len(self.graph.tensors)
        self.graph.tensors.append(FloatTensor(op.name, *shape))
        self.graph.ops.append(op)
