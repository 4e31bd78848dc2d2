"""Gradients of layers for every sample of a batch on its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.baselines.backprop import layer_sums
from pmt.baselines.backprop.integer_network import IntegerNetwork
from pmt.baselines.backprop.torch_package import tensor_of, torch
from pmt.model import Model

__all__ = ["SampleGradients", "sample_weight_gradients"]

Array = npt.NDArray[np.float32]


class SampleGradients:
    """Differentiates each sample's loss by the weights and biases of some layers, by op index."""

    def __init__(self, model: Model, layers: list[int]) -> None:
        self.network = IntegerNetwork(model).requires_grad_(False)
        self.layers = layers
        self.inputs: dict[int, Any] = {}
        self.accumulators: dict[int, Any] = {}
        for index in layers:
            self.network.watched[index] = self._watch(index)

    def __call__(
        self, images: npt.NDArray[np.int8], labels: npt.NDArray[np.int64]
    ) -> tuple[dict[int, tuple[Array, Array]], Array]:
        """Return weight gradients (N, weights) and bias gradients (N, channels), and the losses."""
        logits = self.network(tensor_of(images))
        losses = torch.nn.functional.cross_entropy(logits, tensor_of(labels), reduction="none")
        wanted = [self.accumulators[index] for index in self.layers]
        gradients = torch.autograd.grad(losses.sum(), wanted)
        found = {}
        for index, gradient in zip(self.layers, gradients, strict=True):
            op = self.network.graph.ops[index]
            weights = sample_weight_gradients(op, self.inputs[index], gradient).flatten(1)
            found[index] = (weights.numpy(), gradient.sum((1, 2)).numpy())
        return found, losses.detach().numpy()

    def _watch(self, index: int) -> Callable[[Any, Any], Any]:
        def watch(x: Any, accumulators: Any) -> Any:
            # Its own bias is added after this point: one gradient serves weights and biases.
            seen = accumulators if accumulators.requires_grad else accumulators.requires_grad_()
            self.inputs[index], self.accumulators[index] = x.detach(), seen
            return seen

        return watch


def sample_weight_gradients(op: layer_sums.WindowOp, x: Any, gradient: Any) -> Any:
    """Correlate a layer's centered input with the gradient by its accumulators, sample by sample.

    Returns (N, *weights), with weights in the layout of :class:`pmt.net.graph.Op`.
    """
    samples, channels = len(x), gradient.shape[3]
    if op.kind == "fully_connected":
        return torch.einsum("no,ni->noi", gradient.flatten(1), x.flatten(1))
    patches = _patches(op, x)  # (N, in, taps, positions)
    by_position = gradient.reshape(samples, -1, channels)
    if op.kind == "conv2d":
        weights = torch.einsum("npo,nctp->notc", by_position, patches)
        return weights.reshape(samples, channels, *op.kernel, -1)
    grouped = by_position.reshape(samples, by_position.shape[1], x.shape[3], -1)
    weights = torch.einsum("npcm,nctp->ntcm", grouped, patches)
    return weights.reshape(samples, *op.kernel, channels)


def _patches(op: layer_sums.WindowOp, x: Any) -> Any:
    nchw = layer_sums.padded(x, op.padding, 0.0).permute(0, 3, 1, 2)
    columns = torch.nn.functional.unfold(nchw, op.kernel, stride=op.stride)
    taps = op.kernel[0] * op.kernel[1]
    return columns.reshape(len(x), x.shape[3], taps, -1)
