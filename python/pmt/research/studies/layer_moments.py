"""What the theory of an estimate's error needs to know of a layer: norms of exact gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.model import Model

__all__ = ["LayerMoments", "layer_moments"]


@dataclass(frozen=True)
class LayerMoments:
    """Exact (straight-through) gradients of one layer and their norms, in int8 steps.

    Attributes
    ----------
    gradient : ndarray of float64, shape (weights,)
        By the weights, mean over the images, nats a step.
    weights, nodes : int
        Dimensions.
    weight_squares : ndarray of float64, shape (N,)
        Squared norm of each image's gradient by the weights.
    node_squares : ndarray of float64, shape (N,)
        Of each image's gradient by the output, as a perturbation sees it: half the gradient where
        the output stands at a clamp, since only one of two signs moves it.
    patch_squares : ndarray of float64, shape (N,)
        Sum over output nodes of the squared norm of the weights' derivative by that node's
        gradient: what turns an error of the node gradient into one of the weights' gradient.
    diagonal : ndarray of float64, shape (N,)
        The same sum, each node weighted with its squared gradient.
    """

    gradient: npt.NDArray[np.float64]
    weights: int
    nodes: int
    weight_squares: npt.NDArray[np.float64]
    node_squares: npt.NDArray[np.float64]
    patch_squares: npt.NDArray[np.float64]
    diagonal: npt.NDArray[np.float64]

    @property
    def squares(self) -> float:
        """Squared norm of the mean gradient."""
        return float(self.gradient @ self.gradient)

    @property
    def coherence(self) -> float:
        """Mean squared norm of an image's gradient over that of the mean: 1 if all agree."""
        return float(self.weight_squares.mean()) / self.squares


def layer_moments(
    model: Model, images: npt.NDArray[np.int8], labels: npt.NDArray[np.int64], layer: int
) -> LayerMoments:
    """Differentiate the int8 network at one layer, with rounding taken as the identity.

    Parameters
    ----------
    model : Model
        The network.
    images : ndarray of int8, shape (N, height, width, channels)
        Prepared images.
    labels : ndarray of int64, shape (N,)
        Their classes.
    layer : int
        Op index of a layer.

    Returns
    -------
    LayerMoments
        Of this layer on these images.

    Raises
    ------
    ImportError
        If torch is missing.
    """
    from pmt.baselines.backprop.sample_gradients import sample_weight_gradients

    caught = _differentiated(model, images, labels, layer)
    op = model.to_graph().ops[layer]
    weights = sample_weight_gradients(op, caught["x"], caught["by_sums"]).flatten(1).double()
    out = caught["by_output"].flatten(1).double()
    at_clamp = caught["at_clamp"].flatten(1)
    seen = out * (1.0 - 0.5 * at_clamp.double())
    patches = _patch_norms(op, caught["x"]).double()  # (N, positions, channels)
    scales = caught["output_scales"].double()
    inside = (~at_clamp).reshape(len(images), -1, len(scales)).double()
    spread = inside * scales**2 * patches
    gradient = out.reshape(spread.shape)
    return LayerMoments(
        gradient=weights.mean(0).numpy(),
        weights=int(weights.shape[1]),
        nodes=int(out.shape[1]),
        weight_squares=(weights**2).sum(1).numpy(),
        node_squares=(seen**2).sum(1).numpy(),
        patch_squares=spread.sum((1, 2)).numpy(),
        diagonal=(gradient**2 * spread).sum((1, 2)).numpy(),
    )


def _differentiated(
    model: Model, images: npt.NDArray[np.int8], labels: npt.NDArray[np.int64], layer: int
) -> dict[str, Any]:
    """Input of the layer, gradients by its sums and by its output, which outputs are at a clamp."""
    from pmt.baselines.backprop.integer_network import IntegerNetwork
    from pmt.baselines.backprop.torch_package import tensor_of, torch

    caught: dict[str, Any] = {}

    class Tapped(IntegerNetwork):
        def _op(self, index: int, op: Any, sources: list[Any]) -> Any:
            result = super()._op(index, op, sources)
            if index == layer:
                caught["output"] = result
            return result

    network = Tapped(model).requires_grad_(False)
    op = network.graph.ops[layer]

    def watch(x: Any, sums: Any) -> Any:
        caught["x"], caught["sums"] = x.detach(), sums.requires_grad_()
        return caught["sums"]

    network.watched[layer] = watch
    logits = network(tensor_of(images))
    losses = torch.nn.functional.cross_entropy(logits, tensor_of(labels), reduction="sum")
    scales = getattr(network, f"output_scales{layer}")
    if "output" not in caught:  # the head, whose sums are the logits: they are its nodes
        (by_sums,) = torch.autograd.grad(losses, caught["sums"])
        return {
            **caught,
            "by_sums": by_sums,
            "by_output": by_sums / scales,
            "at_clamp": torch.zeros_like(by_sums, dtype=torch.bool),
            "output_scales": scales,
        }
    by_sums, by_output = torch.autograd.grad(losses, (caught["sums"], caught["output"]))
    zero = network.graph.tensors[op.output].zero_point
    output = caught["output"].detach() + zero
    return {
        **caught,
        "by_sums": by_sums,
        "by_output": by_output,
        "at_clamp": (output <= op.clamp[0]) | (output >= op.clamp[1]),
        "output_scales": scales,
    }


def _patch_norms(op: Any, x: Any) -> Any:
    """Squared norm of what each output node's weights multiply, (N, positions, channels)."""
    from pmt.baselines.backprop import layer_sums
    from pmt.baselines.backprop.torch_package import torch

    squares = x.double() ** 2
    if op.kind == "fully_connected":
        return squares.flatten(1).sum(1)[:, None, None]
    nchw = layer_sums.padded(squares, op.padding, 0.0).permute(0, 3, 1, 2)
    columns = torch.nn.functional.unfold(nchw, op.kernel, stride=op.stride)
    by_channel = columns.reshape(len(x), x.shape[3], -1, columns.shape[2]).sum(2)
    if op.kind == "conv2d":
        return by_channel.sum(1)[:, :, None]
    channels = op.weights.shape[-1]
    return by_channel.repeat_interleave(channels // x.shape[3], 1).permute(0, 2, 1)
