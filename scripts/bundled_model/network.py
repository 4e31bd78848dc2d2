"""The bundled network in torch, and its float graph with batch norm folded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from pmt.net.float_graph import Activation
from pmt.quantization import FloatGraph, FloatOp, FloatTensor, fold_batch_norm


@dataclass(frozen=True)
class Layer:
    """One convolution with batch norm; ``depthwise`` has as many outputs as inputs."""

    name: str
    block: str
    kernel: int
    inputs: int
    outputs: int
    depthwise: bool = False
    stride: int = 1
    activation: Activation = "relu6"
    residual_from: str | None = None  # the layer whose output is added to this one's


# As in MobileNetV2, the projection of the residual branch is linear.
LAYERS = (
    Layer("conv1", "B1", 3, 1, 16, stride=2),
    Layer("depthwise1", "B1", 3, 16, 16, depthwise=True),
    Layer("pointwise1", "B1", 1, 16, 32),
    Layer("depthwise2", "B2", 3, 32, 32, depthwise=True, stride=2),
    Layer("pointwise2", "B2", 1, 32, 64, activation="none"),
    Layer("expand3", "B3", 1, 64, 128),
    Layer("depthwise3", "B3", 3, 128, 128, depthwise=True),
    Layer("project3", "B3", 1, 128, 64, activation="none", residual_from="pointwise2"),
    Layer("depthwise4", "B4", 3, 64, 64, depthwise=True),
    Layer("pointwise4", "B4", 1, 64, 128),
)
CLASSES = 10
IMAGE_SIDE = 28


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Pixels before and after, as TFLite's SAME: the odd one goes after."""
    total = max(0, (-(-size // stride) - 1) * stride + kernel - size)
    return total // 2, total - total // 2


class Network(nn.Module):
    """``LAYERS``, global mean and one linear head; input ``(N, 1, 28, 28)`` in 0..1."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.ModuleDict()
        self.norms = nn.ModuleDict()
        for layer in LAYERS:
            self.convolutions[layer.name] = nn.Conv2d(
                layer.inputs,
                layer.outputs,
                layer.kernel,
                layer.stride,
                groups=layer.inputs if layer.depthwise else 1,
                bias=False,
            )
            self.norms[layer.name] = nn.BatchNorm2d(layer.outputs)
        self.head = nn.Linear(LAYERS[-1].outputs, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits ``(N, 10)``."""
        kept = {}
        for layer in LAYERS:
            before, after = same_padding(x.shape[-1], layer.kernel, layer.stride)
            if before or after:
                x = nn.functional.pad(x, (before, after, before, after))
            x = self.norms[layer.name](self.convolutions[layer.name](x))
            if layer.residual_from is not None:
                x = x + kept[layer.residual_from]
            if layer.activation == "relu6":
                x = nn.functional.relu6(x)
            kept[layer.name] = x
        return self.head(x.mean(dim=(2, 3)))


def float_graph(network: Network) -> FloatGraph:
    """Convert a trained network (batch norm folded; blocks ``B1``..``B4``, ``head``, ``all``)."""
    graph = FloatGraph(
        tensors=[FloatTensor("image", IMAGE_SIDE, IMAGE_SIDE, 1)],
        ops=[],
        input=0,
        output=0,
        # The int8 input is then the pixel - 128.
        input_mean=(0.0,),
        input_std=(255.0,),
    )
    outputs: dict[str, int] = {}
    blocks: dict[str, list[int]] = {"B1": [], "B2": [], "B3": [], "B4": [], "head": [], "all": []}
    for layer in LAYERS:
        blocks[layer.block].append(len(graph.ops))
        _append_layer(graph, network, layer)
        if layer.residual_from is not None:
            _append(
                graph,
                FloatOp(
                    "add", f"{layer.name}_add", (outputs[layer.residual_from], graph.output), 0
                ),
                graph.tensors[graph.output],
            )
        outputs[layer.name] = graph.output
    _append(graph, FloatOp("mean", "mean", (graph.output,), 0), FloatTensor("", 1, 1, 128))
    blocks["head"].append(len(graph.ops))
    head = FloatOp("fully_connected", "head", (graph.output,), 0)
    head.weights = _array(network.head.weight)
    head.bias = _array(network.head.bias)
    _append(graph, head, FloatTensor("", 1, 1, CLASSES))
    blocks["all"] = sorted(index for layers in blocks.values() for index in layers)
    graph.blocks = blocks
    return graph


def _append_layer(graph: FloatGraph, network: Network, layer: Layer) -> None:
    weights = _array(network.convolutions[layer.name].weight)  # out, in or 1, kernel, kernel
    norm = network.norms[layer.name]
    op = FloatOp(
        "depthwise_conv2d" if layer.depthwise else "conv2d",
        layer.name,
        (graph.output,),
        0,
        kernel=(layer.kernel, layer.kernel),
        stride=(layer.stride, layer.stride),
        activation=layer.activation,
    )
    size = graph.tensors[graph.output].height
    before, after = same_padding(size, layer.kernel, layer.stride)
    op.padding = (before, before, after, after)
    op.weights, op.bias = fold_batch_norm(
        weights[:, 0].transpose(1, 2, 0) if layer.depthwise else weights.transpose(0, 2, 3, 1),
        np.zeros(layer.outputs, np.float32),
        channel_axis=2 if layer.depthwise else 0,
        gamma=_array(norm.weight),
        beta=_array(norm.bias),
        mean=_array(norm.running_mean),
        variance=_array(norm.running_var),
        epsilon=norm.eps,
    )
    size = -(-size // layer.stride)
    _append(graph, op, FloatTensor("", size, size, layer.outputs))


def _append(graph: FloatGraph, op: FloatOp, shape: FloatTensor) -> None:
    op.output = graph.output = len(graph.tensors)
    graph.tensors.append(FloatTensor(op.name, shape.height, shape.width, shape.channels))
    graph.ops.append(op)


def _array(values: torch.Tensor | None) -> npt.NDArray[np.float32]:
    assert values is not None  # torch types the running statistics as optional
    return values.detach().numpy().astype(np.float32)
