"""Multiply-accumulates of back-propagation."""

from __future__ import annotations

from pmt.baselines.backprop.backward_graph import BackwardGraph
from pmt.baselines.backprop.scheme import UpdateScheme
from pmt.model import Model
from pmt.train.costs.work import Work

__all__ = ["backward_work"]


def backward_work(model: Model, scheme: UpdateScheme) -> Work:
    """Count what a step takes for each image.

    A layer's input gradient and its weight gradient take as many multiply-accumulates as its
    forward pass; the weight gradient only by the share of input channels that are trained. No
    input gradient is formed where nothing before the layer is trained. Bias gradients are sums.

    Parameters
    ----------
    model : Model
        The network.
    scheme : UpdateScheme
        What is trained.

    Returns
    -------
    Work
        For one image.
    """
    graph = BackwardGraph.of(model, scheme)
    return Work(
        forward=model.macs,
        input_gradients=graph.input_gradient_macs(),
        weight_gradients=graph.weight_gradient_macs(model),
    )
