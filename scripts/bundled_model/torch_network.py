"""A float graph as a torch module with batch norm, and back."""

from copy import deepcopy
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from pmt.net.graph import channel_axis, is_layer
from pmt.quantization import FloatGraph, FloatOp


class TorchNetwork(nn.Module):
    """The layers of a float graph, all but the last followed by a batch norm.

    With ``weights="graph"`` layers have the graph's weights and norms start as the identity (with
    the running statistics 0 and 1); :func:`absorb_statistics` sets them so that training starts
    well-conditioned and from the very same function. With ``"random"`` all is as torch makes it.
    """

    def __init__(self, graph: FloatGraph, weights: Literal["graph", "random"] = "graph") -> None:
        super().__init__()
        self.graph = graph
        self.layers = nn.ModuleDict()
        self.norms = nn.ModuleDict()
        layers = [op for op in graph.ops if is_layer(op)]
        for op in layers:
            last = op is layers[-1]
            layer = self.layers[_key(op)] = _new_layer(op, has_bias=last)
            if not last:
                norm = self.norms[_key(op)] = nn.BatchNorm2d(len(layer.weight))
            if weights == "random":
                continue
            layer.weight.data.copy_(torch.from_numpy(_to_torch(op, op.weights)))
            if not last:
                norm.running_var.fill_(1.0 - norm.eps)
            if op.bias is not None:
                (layer if last else norm).bias.data.copy_(torch.from_numpy(op.bias))
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
        elif op.kind == "fully_connected":
            x = self.layers[_key(op)](x.flatten(1))
        elif is_layer(op):
            x = self.layers[_key(op)](_padded(x, op))
            if _key(op) in self.norms:
                x = self.norms[_key(op)](x)
        else:
            raise ValueError(f"op {op.name!r}: {op.kind} is in none of the bundled networks")
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
        if not is_layer(op):
            continue
        layer = network.layers[_key(op)]
        weights = _from_torch(op, _array(layer.weight))
        if _key(op) in network.norms:
            norm = network.norms[_key(op)]
            op.weights, op.bias = _with_norm(weights, channel_axis(op.kind), norm)
        else:
            op.weights, op.bias = weights, _array(layer.bias)
    return graph


def _with_norm(
    weights: npt.NDArray[np.float32], axis: int, norm: nn.BatchNorm2d
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Fold the running statistics of a norm into weights, and return the bias that it makes."""
    factor = _array(norm.weight).astype(np.float64)
    factor /= np.sqrt(_array(norm.running_var).astype(np.float64) + norm.eps)
    bias = _array(norm.bias) - _array(norm.running_mean) * factor
    folded = np.moveaxis(np.moveaxis(weights, axis, -1) * factor, -1, axis)
    return np.ascontiguousarray(folded, np.float32), bias.astype(np.float32)


def _key(op: FloatOp) -> str:
    return op.name.replace(".", "_")  # torch keeps dots for itself


def _padded(x: torch.Tensor, op: FloatOp) -> torch.Tensor:
    top, left, bottom, right = op.padding
    symmetric = top == bottom and left == right
    return x if symmetric else nn.functional.pad(x, (left, right, top, bottom))


def _new_layer(op: FloatOp, *, has_bias: bool) -> nn.Conv2d | nn.Linear:
    assert op.weights is not None
    out, *inner = _to_torch(op, op.weights).shape
    if op.kind == "fully_connected":
        return nn.Linear(inner[0], out, bias=has_bias)
    top, left, bottom, right = op.padding
    groups = out if op.kind == "depthwise_conv2d" else 1
    return nn.Conv2d(
        inner[0] * groups,
        out,
        op.kernel,
        op.stride,
        groups=groups,
        padding=(top, left) if top == bottom and left == right else 0,
        bias=has_bias,
    )


def _to_torch(op: FloatOp, weights: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    if op.kind == "conv2d":
        weights = weights.transpose(0, 3, 1, 2)
    elif op.kind == "depthwise_conv2d":
        weights = weights.transpose(2, 0, 1)[:, None]
    return np.ascontiguousarray(weights)


def _from_torch(op: FloatOp, weights: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    if op.kind == "conv2d":
        weights = weights.transpose(0, 2, 3, 1)
    elif op.kind == "depthwise_conv2d":
        weights = weights[:, 0].transpose(1, 2, 0)
    return np.ascontiguousarray(weights)


def _array(values: torch.Tensor) -> npt.NDArray[np.float32]:
    return values.detach().cpu().numpy().astype(np.float32)
