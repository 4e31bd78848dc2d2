"""Multiply-accumulates of measuring what settings suit each layer."""

from __future__ import annotations

from collections.abc import Sequence

from pmt import _core
from pmt.train.costs.work import Work

__all__ = ["probe_work"]


def probe_work(model: _core.Model, options: _core.Options, layers: Sequence[int]) -> Work:
    """Count what a measurement takes for each of its images; nothing where none is made.

    Parameters
    ----------
    model : _core.Model
        The network.
    options : _core.Options
        What is measured, and with how many queries.
    layers : sequence of int
        Op indices, ascending.

    Returns
    -------
    Work
        A forward up to the last layer, for the squares of the inputs; and for each estimator and
        size of perturbation that is probed a clean forward and every layer's queries.
    """
    calibrated = options.mu == "calibrated"
    measured = options.rule == "measured"
    if not (calibrated or measured or options.allocation == "variance"):
        return Work(forward=0)
    macs = [int(op["macs"]) for op in model.ops()]
    trained = _core.Trainer(model, options, list(layers), 1, 1).layers()
    probed = [layer["op"] for layer in trained if layer["estimator"] != "closed_form"]
    rounds = (2 if calibrated else 1) * (2 if measured else 1)
    return Work(
        forward=rounds * sum(macs),
        queries=rounds * options.probe_queries * sum(sum(macs[op:]) for op in probed),
        reforwards=sum(macs[: layers[-1] + 1]),
        forwards=rounds * options.probe_queries * len(probed),
    )
