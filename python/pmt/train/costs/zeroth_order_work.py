"""Multiply-accumulates of zeroth-order training."""

from __future__ import annotations

from collections.abc import Sequence

from pmt import _core
from pmt.train.costs.work import Work

__all__ = ["zeroth_order_work"]


def zeroth_order_work(
    model: _core.Model,
    options: _core.Options,
    layers: Sequence[int],
    settings: Sequence[_core.LayerSettings] = (),
    *,
    of_ops: Sequence[int] | None = None,
) -> Work:
    """Count what a step takes for each image.

    Parameters
    ----------
    model : _core.Model
        The network.
    options : _core.Options
        Queries, scope, and which estimator a layer gets.
    layers : sequence of int
        Op indices, ascending.
    settings : sequence of _core.LayerSettings, optional
        One for each layer; by default the options'.
    of_ops : sequence of int, optional
        What each op takes, of another measure than its multiply-accumulates.

    Returns
    -------
    Work
        With Q queries and layers i of suffix T_i, ``Q * sum T_i`` for the queries (paper section
        3.1); model-wise, Q times the suffix of the first.
    """
    macs = [int(op["macs"]) for op in model.ops()] if of_ops is None else of_ops
    trained = _core.Trainer(model, options, list(layers), 1, 1, list(settings)).layers()
    queried = [layer for layer in trained if layer["estimator"] != "closed_form"]
    if options.scope == "model_wise":
        queried = queried[:1]
    again = [layer["op"] for layer in trained if layer["estimator"] != "weight_perturbation"]
    return Work(
        forward=sum(macs),
        queries=sum(layer["queries"] * sum(macs[layer["op"] :]) for layer in queried),
        reforwards=sum(sum(macs[: op + 1]) for op in again),
        weight_gradients=sum(macs[op] for op in again) if options.train_weights else 0,
        forwards=sum(layer["queries"] for layer in queried),
    )
