"""A float graph as a torch module with batch norm, and back."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from pmt.net.graph import LAYER_KINDS
from pmt.quantization import FloatGraph, FloatOp, fold_batch_norm


class TorchNetwork(nn.Module):
    """The layers of a float graph, all but the last followed by a batch norm.

    The norms start as the identity (with the running statistics 0 and 1);
    :func:`absorb_statistics` sets them so that training starts well-conditioned and from the very
    same function.
    """

    def __init__(self, graph: FloatGraph) -> None:
        super().__init__()
        self.graph = graph
        self.layers = nn.ModuleDict()
        self.norms = nn.ModuleDict()
        layers = [op for op in graph.ops if op.kind in LAYER_KINDS]
        for op in layers:
            self.layers[_key(op)] = _convolution(op, has_bias=op is layers[-1])
            if op is not layers[-1]:
                self.norms[_key(op)] = _identity_norm(op)
        mean, std = (
            torch.tensor(v).reshape(1, -1, 1, 1) for v in (graph.input_mean, graph.input_std)
        )
        self.register_buffer("mean", mean, persistent=False)
        self.register_buffer("std", std, persistent=False)

    @property
    def side(self) -> int:
        """Height and width of the input in pixels."""
        return self.graph.tensors[self.graph.input].height

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map pixels 0..255, ``(N, C, H, W)``, to logits ``(N, classes)``."""
        kept = {self.graph.input: (images - self.mean) / self.std}
        for op in self.graph.ops:
            kept[op.output] = self.output_of(op, [kept[i] for i in op.inputs])
        return kept[self.graph.output].flatten(1)

    def output_of(self, op: FloatOp, sources: list[torch.Tensor]) -> torch.Tensor:
        """Apply one op, with its batch norm and activation."""
        x = sources[0]
        if op.kind == "add":
            x = x + sources[1]
        elif op.kind == "mean":
            x = x.mean((2, 3), keepdim=True)
        elif op.kind in ("conv2d", "depthwise_conv2d"):
            x = self.layers[_key(op)](_padded(x, op))
            if _key(op) in self.norms:
                x = self.norms[_key(op)](x)
        else:
            raise ValueError(f"op {op.name!r}: {op.kind} is not used by the zoo's networks")
        if op.activation == "relu6":
            x = nn.functional.relu6(x)
        return x


def absorb_statistics(network: TorchNetwork, images: torch.Tensor) -> None:
    """Give every norm the statistics of `images` and every channel unit variance before it.

    The function stays what it was: a norm multiplies by what its convolution was divided by.
    """
    kept = {network.graph.input: (images - network.mean) / network.std}
    with torch.no_grad():
        for op in network.graph.ops:
            if _key(op) in network.norms:
                layer, norm = network.layers[_key(op)], network.norms[_key(op)]
                plain = layer(_padded(kept[op.inputs[0]], op))
                mean, deviation = plain.mean((0, 2, 3)), plain.std((0, 2, 3)).clamp_min(1e-3)
                layer.weight /= deviation.reshape(-1, 1, 1, 1)
                norm.running_mean.copy_(mean / deviation)
                norm.running_var.fill_(1.0 - norm.eps)
                norm.bias += norm.weight * mean
                norm.weight *= deviation
            network.eval()
            kept[op.output] = network.output_of(op, [kept[i] for i in op.inputs])


def trained_graph(network: TorchNetwork) -> FloatGraph:
    """Return the graph with the trained weights, batch norm folded into them."""
    graph = deepcopy(network.graph)
    for op in graph.ops:
        if op.kind not in LAYER_KINDS:
            continue
        layer = network.layers[_key(op)]
        weights = _from_torch(op, _array(layer.weight))
        if _key(op) in network.norms:
            norm = network.norms[_key(op)]
            op.weights, op.bias = fold_batch_norm(
                weights,
                np.zeros(layer.out_channels, np.float32),
                channel_axis=2 if op.kind == "depthwise_conv2d" else 0,
                gamma=_array(norm.weight),
                beta=_array(norm.bias),
                mean=_array(norm.running_mean),
                variance=_array(norm.running_var),
                epsilon=norm.eps,
            )
        else:
            op.weights, op.bias = weights, _array(layer.bias)
    return graph


def _key(op: FloatOp) -> str:
    return op.name.replace(".", "_")  # torch keeps dots for itself


def _padded(x: torch.Tensor, op: FloatOp) -> torch.Tensor:
    top, left, bottom, right = op.padding
    symmetric = top == bottom and left == right
    return x if symmetric else nn.functional.pad(x, (left, right, top, bottom))


def _convolution(op: FloatOp, *, has_bias: bool) -> nn.Conv2d:
    assert op.weights is not None
    weights = _to_torch(op, op.weights)
    top, left, bottom, right = op.padding
    groups = len(weights) if op.kind == "depthwise_conv2d" else 1
    layer = nn.Conv2d(
        weights.shape[1] * groups,
        len(weights),
        op.kernel,
        op.stride,
        groups=groups,
        padding=(top, left) if top == bottom and left == right else 0,
        bias=has_bias,
    )
    layer.weight.data.copy_(torch.from_numpy(weights))
    if has_bias and op.bias is not None:
        layer.bias.data.copy_(torch.from_numpy(op.bias))
    return layer


def _identity_norm(op: FloatOp) -> nn.BatchNorm2d:
    assert op.weights is not None
    channels = op.weights.shape[2 if op.kind == "depthwise_conv2d" else 0]
    norm = nn.BatchNorm2d(channels)
    norm.running_var.fill_(1.0 - norm.eps)
    if op.bias is not None:
        norm.bias.data.copy_(torch.from_numpy(op.bias))
    return norm


def _to_torch(op: FloatOp, weights: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    if op.kind == "depthwise_conv2d":
        return np.ascontiguousarray(weights.transpose(2, 0, 1)[:, None])
    return np.ascontiguousarray(weights.transpose(0, 3, 1, 2))


def _from_torch(op: FloatOp, weights: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    if op.kind == "depthwise_conv2d":
        return np.ascontiguousarray(weights[:, 0].transpose(1, 2, 0))
    return np.ascontiguousarray(weights.transpose(0, 2, 3, 1))


def _array(values: torch.Tensor) -> npt.NDArray[np.float32]:
    return values.detach().cpu().numpy().astype(np.float32)
