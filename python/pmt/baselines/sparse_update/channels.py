"""Choices of input channels: by the norm of their weights, or by their potentials (TinyTrain)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt._util.progress import ProgressLine
from pmt.baselines.backprop.scheme import LayerUpdate, UpdateScheme, input_channels
from pmt.model import Model

__all__ = [
    "by_input_channel",
    "channel_potentials",
    "chosen_scheme",
    "forward_potentials",
    "largest_channels",
    "top_channels",
]


def top_channels(scores: npt.ArrayLike, count: int) -> tuple[int, ...]:
    """Return the ``count`` channels of the highest score, ascending; of equals the first."""
    order = np.argsort(-np.asarray(scores, np.float64), kind="stable")
    return tuple(sorted(int(channel) for channel in order[:count]))


def largest_channels(model: Model, op: int, count: int) -> tuple[int, ...]:
    """Return the input channels whose int8 weights have the largest Euclidean norm, ascending.

    MCUTrain's rule. A depthwise layer's channels are its own; of equal norms the first are taken.
    """
    weights = by_input_channel(model, op, model.core.weights(op)).astype(np.int64)
    return top_channels(np.square(weights).sum(axis=(0, 2)), count)


def chosen_scheme(model: Model, scheme: UpdateScheme) -> UpdateScheme:
    """Return the scheme with the channels chosen, by the weights, where they are not."""
    updates = []
    for u in scheme.layers:
        chosen = u.chosen or largest_channels(model, u.op, u.channels)
        updates.append(LayerUpdate(u.op, u.channels, u.bias, chosen))
    return UpdateScheme(tuple(updates))


def by_input_channel(model: Model, op: int, weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """View an array in the shape of a layer's weights as (before, input channels, after)."""
    channels = input_channels(model, op)
    if model.core.ops()[op]["kind"] != "depthwise_conv2d":
        return weights.reshape(-1, channels, 1)  # (out, kernel, kernel, in)
    kernel = model.core.ops()[op]["kernel"]  # (kernel, kernel, in, outputs of each)
    return weights.reshape(kernel[0] * kernel[1], channels, -1)


def channel_potentials(
    model: Model,
    images: npt.NDArray[np.int8],
    labels: npt.NDArray[np.int64],
    layers: Sequence[int],
    *,
    chunk: int = 50,
) -> dict[int, npt.NDArray[np.float64]]:
    """Estimate the Fisher potential of every input channel of some layers.

    With the activation ``a`` and its gradient ``g`` of sample n, over positions d:
    ``potential_o = 1/(2N) * sum_n (sum_d a_nd g_nd)^2``, the change of the loss (to second order,
    with the empirical Fisher information as its curvature) when channel o is set to zero
    (TinyTrain, arXiv:2307.09988, section 2.2). The product has no unit: scales cancel.

    Layers are op indices; the activation of a layer is its input, which an update of its weights
    has to keep: fewer channels are less memory. Images are prepared ones, ``chunk`` at once.
    Returns float64 (input channels,) by op index, of a linear layer (features,). Needs torch.
    """
    from pmt.baselines.backprop.integer_network import IntegerNetwork
    from pmt.baselines.backprop.torch_package import tensor_of

    _check_counts(images, labels)
    network = IntegerNetwork(model).requires_grad_(False)
    sums = {op: np.float64(0.0) for op in layers}
    for first in range(0, len(images), chunk):
        part = slice(first, first + chunk)
        products = _products(network, tensor_of(images[part]), tensor_of(labels[part]), layers)
        for op, product in products.items():
            sums[op] = sums[op] + np.square(product).sum(axis=0)
    return {op: np.asarray(total) / (2 * len(images)) for op, total in sums.items()}


def _check_counts(images: npt.NDArray[np.int8], labels: npt.NDArray[np.int64]) -> None:
    if len(images) == 0 or len(images) != len(labels):
        raise ValueError(
            f"{len(images)} images and {len(labels)} labels: give as many, one or more"
        )


def _products(network: Any, images: Any, labels: Any, layers: Sequence[int]) -> dict[int, Any]:
    """Return the sum over positions of activation times gradient: (N, channels) by op index."""
    from pmt.baselines.backprop.torch_package import torch

    inputs: dict[int, Any] = {}

    def watch(op: int) -> Callable[[Any, Any], Any]:
        def keep(x: Any, accumulators: Any) -> Any:
            x.retain_grad()
            inputs[op] = x
            return accumulators

        return keep

    network.watched = {op: watch(op) for op in layers}
    # The image asks for a gradient, and so does every activation that descends from it.
    losses = torch.nn.functional.cross_entropy(
        network(images.float().requires_grad_()), labels, reduction="sum"
    )
    losses.backward()
    found = {}
    for op, x in inputs.items():
        product = (x * x.grad).detach().double()
        linear = network.graph.ops[op].kind == "fully_connected"
        found[op] = (product.flatten(1) if linear else product.sum((1, 2))).numpy()
    return found


def forward_potentials(
    model: Model,
    images: npt.NDArray[np.int8],
    labels: npt.NDArray[np.int64],
    layers: Sequence[int],
    *,
    threads: int = 1,
) -> dict[int, npt.NDArray[np.float64]]:
    """Measure what each input channel of some layers is worth, with forward passes only.

    The Fisher potential ``1/(2N) * sum_n (sum_d a_nd g_nd)^2`` holds the change of each sample's
    loss when a channel becomes zero, to first order. Here that change is measured:
    ``1/(2N) * sum_n (loss_n without channel - loss_n)^2``. A channel is taken out by setting its
    weights to zero, which int8 holds exactly: no rounding stands between. A residual
    connection that reads the activation still does.

    Arguments and result are those of :func:`channel_potentials`; each channel takes one forward of
    all images.
    """
    _check_counts(images, labels)
    tried = model.copy()
    clean = _losses(tried, images, labels, threads)
    total = {op: by_input_channel(model, op, model.core.weights(op)).shape[1] for op in layers}
    line, done = ProgressLine(sum(total.values()), unit="channel"), 0
    found = {}
    try:
        for op in layers:
            weights, bias = model.core.weights(op), model.core.bias(op)
            found[op] = np.zeros(total[op])
            for channel in range(total[op]):
                without = np.array(weights)
                by_input_channel(model, op, without)[:, channel] = 0
                if (without != weights).any():
                    tried.core.set_parameters(op, without, bias)
                    change = _losses(tried, images, labels, threads) - clean
                    found[op][channel] = np.square(change).mean() / 2
                done += 1
                line.update(done, "")
            tried.core.set_parameters(op, weights, bias)
    finally:
        line.clear()
    return found


def _losses(
    model: Model, images: npt.NDArray[np.int8], labels: npt.NDArray[np.int64], threads: int
) -> npt.NDArray[np.float64]:
    """Return the cross-entropy of every image, in nats."""
    logits = model.core.logits(images, threads=threads)
    losses, _ = _core.cross_entropy(logits, np.ascontiguousarray(labels))
    return losses.astype(np.float64) / _core.LOSS_ONE
