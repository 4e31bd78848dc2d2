"""Multiply-accumulates that a device does again, for lack of memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pmt import _core

__all__ = ["device_restarts"]


def device_restarts(
    model: _core.Model,
    options: _core.Options,
    layers: Sequence[int],
    device: _core.DeviceMemory,
    batch: int,
    settings: Sequence[_core.LayerSettings] = (),
    *,
    of_ops: Sequence[int] | None = None,
) -> int:
    """Count what a device does beyond :func:`pmt.train.costs.zeroth_order_work.zeroth_order_work`.

    A query of a layer that streams begins with the stream. A gradient that is summed up for a group
    of channels after another runs the stream again for each group, or, with several images, all of
    the network up to the layer; where the size of the step depends on the whole gradient, twice.

    Parameters
    ----------
    model : _core.Model
        The network.
    options : _core.Options
        As they will be on the device.
    layers : sequence of int
        Op indices, ascending.
    device : _core.DeviceMemory
        Its plan, of the same options.
    batch : int
        Images of a step.
    settings : sequence of _core.LayerSettings, optional
        One for each layer; by default the options'.
    of_ops : sequence of int, optional
        What each op takes, of another measure than its multiply-accumulates.

    Returns
    -------
    int
        Multiply-accumulates for one image.
    """
    macs = [int(op["macs"]) for op in model.ops()] if of_ops is None else of_ops
    begins = {op: begin for begin, end, _ in device.segments() for op in range(begin, end + 1)}
    trained = _core.Trainer(model, options, list(layers), 1, 1, list(settings)).layers()
    again = 0
    for layer, at_once in zip(trained, device.channels_at_once(), strict=True):
        op, exact = int(layer["op"]), layer["estimator"] == "closed_form"
        begin = begins.get(op, op)
        again += 0 if exact else int(layer["queries"]) * sum(macs[begin:op])
        if layer["estimator"] == "weight_perturbation":
            continue
        groups = math.ceil(model.bias(op).size / at_once)
        passes = groups * _summings(options, exact, groups)
        first = begin if batch == 1 else 0
        streams = op in begins
        repeated = sum(macs[first : op + (0 if exact else 1)]) if streams or batch > 1 else 0
        again += (passes - 1) * repeated
        again += (passes // groups - 1) * macs[op] if options.train_weights else 0
    return again


def _summings(options: _core.Options, exact: bool, groups: int) -> int:
    """Return how often all of a gradient is summed up: to be accumulated, and to be applied."""
    has_moments = options.optimizer != "sgd"
    measured = options.gradient_norm_scaling == "measured" and not exact
    needs_all_sums = options.step == "normalised" or measured
    return 2 if needs_all_sums and not has_moments and groups > 1 else 1
