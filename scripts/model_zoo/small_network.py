"""A small network of MCUNet's family for 32x32 images: inverted bottlenecks, kernels of 3 and 5."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmt.formats.layers import consecutive_blocks
from pmt.net.float_graph import Activation
from pmt.net.graph import LAYER_KINDS
from pmt.quantization import FloatGraph, FloatOp, FloatTensor

SIDE = 32
STEM_CHANNELS = 16


@dataclass(frozen=True)
class Bottleneck:
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


def float_graph(classes: int, seed: int) -> FloatGraph:
    """Return the network with random weights (He et al. 2015, fan-out) and a head of zeros."""
    builder = _Builder(np.random.default_rng(seed))
    builder.convolution("first_conv", STEM_CHANNELS, kernel=3, activation="relu6")
    for number, block in enumerate(BOTTLENECKS):
        builder.bottleneck(f"b{number}", block)
    builder.mean("avgpool")
    builder.convolution("classifier", classes)
    return builder.finished()


class _Builder:
    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator
        self._graph = FloatGraph(
            tensors=[FloatTensor("input", SIDE, SIDE, 3)],
            ops=[],
            input=0,
            output=0,
            # The int8 input is then the pixel - 128.
            input_mean=(128.0,) * 3,
            input_std=(128.0,) * 3,
        )

    def convolution(
        self, name: str, outputs: int, *, kernel: int = 1, activation: Activation = "none"
    ) -> None:
        inputs = self._graph.tensors[self._graph.output].channels
        weights = self._random((outputs, kernel, kernel, inputs), outputs * kernel * kernel)
        self._layer("conv2d", name, weights, outputs, kernel, 1, activation)

    def bottleneck(self, name: str, block: Bottleneck) -> None:
        graph, before = self._graph, self._graph.output
        if block.expanded != graph.tensors[before].channels:
            self.convolution(f"{name}.pointwise1", block.expanded, activation="relu6")
        kernel, channels = block.kernel, graph.tensors[graph.output].channels
        weights = self._random((kernel, kernel, channels), kernel * kernel)
        self._layer(
            "depthwise_conv2d",
            f"{name}.depthwise",
            weights,
            channels,
            kernel,
            block.stride,
            "relu6",
        )
        self.convolution(f"{name}.pointwise2", block.outputs)
        if graph.tensors[before].shape == graph.tensors[graph.output].shape:
            add = FloatOp("add", f"{name}.add", (before, graph.output), 0)
            self._append(add, graph.tensors[before].shape)

    def mean(self, name: str) -> None:
        channels = self._graph.tensors[self._graph.output].channels
        self._append(FloatOp("mean", name, (self._graph.output,), 0), (1, 1, channels))

    def finished(self) -> FloatGraph:
        """Empty the head, and name the blocks as the importer of MCUNet does."""
        ops = self._graph.ops
        ops[-1].weights = np.zeros_like(ops[-1].weights)
        layers = [i for i, op in enumerate(ops) if op.kind in LAYER_KINDS]
        wide = [i for i in layers if ops[i].name.endswith(("first_conv", "pointwise1"))]
        self._graph.blocks = {**consecutive_blocks(wide), "head": layers[-1:], "all": layers}
        return self._graph

    def _random(self, shape: tuple[int, ...], fan: int) -> np.ndarray:
        return self._generator.normal(0.0, np.sqrt(2.0 / fan), shape).astype(np.float32)

    def _layer(
        self,
        kind: str,
        name: str,
        weights: np.ndarray,
        channels: int,
        kernel: int,
        stride: int,
        activation: Activation,
    ) -> None:
        side = self._graph.tensors[self._graph.output].height
        margin = kernel // 2
        op = FloatOp(
            kind,
            name,
            (self._graph.output,),
            0,
            kernel=(kernel, kernel),
            stride=(stride, stride),
            padding=(margin,) * 4,
            activation=activation,
            weights=weights,
            bias=np.zeros(channels, np.float32),
        )
        side = (side + 2 * margin - kernel) // stride + 1
        self._append(op, (side, side, channels))

    def _append(self, op: FloatOp, shape: tuple[int, int, int]) -> None:
        op.output = self._graph.output = len(self._graph.tensors)
        self._graph.tensors.append(FloatTensor(op.name, *shape))
        self._graph.ops.append(op)
