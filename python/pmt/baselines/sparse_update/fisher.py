"""How much each channel of an activation matters to the loss, as TinyTrain measures it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.model import Model

__all__ = ["channel_potentials"]


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

    Parameters
    ----------
    model : Model
        The network.
    images : ndarray of int8, shape (N, height, width, channels)
        Prepared images.
    labels : ndarray of int64, shape (N,)
        Their classes.
    layers : sequence of int
        Op indices. The activation of a layer is its input, which an update of its weights has to
        keep: fewer channels are less memory.
    chunk : int
        Images at once.

    Returns
    -------
    dict
        By op index, float64 of shape (input channels,); of a linear layer (features,).

    Raises
    ------
    ImportError
        If torch is missing.
    ValueError
        If there are no images or not as many labels.
    """
    from pmt.baselines.backprop.integer_network import IntegerNetwork
    from pmt.baselines.backprop.torch_package import tensor_of

    if len(images) == 0 or len(images) != len(labels):
        raise ValueError(
            f"{len(images)} images and {len(labels)} labels: give as many, one or more"
        )
    network = IntegerNetwork(model).requires_grad_(False)
    sums = {op: np.float64(0.0) for op in layers}
    for first in range(0, len(images), chunk):
        part = slice(first, first + chunk)
        products = _products(network, tensor_of(images[part]), tensor_of(labels[part]), layers)
        for op, product in products.items():
            sums[op] = sums[op] + np.square(product).sum(axis=0)
    return {op: np.asarray(total) / (2 * len(images)) for op, total in sums.items()}


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
