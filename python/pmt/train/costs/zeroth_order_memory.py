"""Peak memory of zeroth-order training: the arena of the target, by part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pmt import _core
from pmt.model import Model
from pmt.train.costs.arena import arena_bytes
from pmt.train.costs.memory import Memory
from pmt.train.costs.peak import peak_moment

__all__ = ["zeroth_order_memory"]

_LOSS = 4  # bytes of a loss, and of a random stream's state
_STREAM = 36
_SAMPLE = 8


def zeroth_order_memory(
    model: Model,
    options: _core.Options,
    layers: Sequence[int],
    *,
    batch: int = 1,
    settings: Sequence[_core.LayerSettings] = (),
) -> Memory:
    """Count the peak memory of a step.

    Parameters
    ----------
    model : Model
        The network.
    options : _core.Options
        Of :func:`pmt.train.costs.arena.device_options`.
    layers : sequence of int
        Op indices, ascending.
    batch : int
        Images of a step.
    settings : sequence of _core.LayerSettings, optional
        One for each layer; by default the options'. Estimators decide what streams, queries how
        many losses there are.

    Returns
    -------
    Memory
        Parts that add up to the arena of :func:`pmt.train.costs.arena.arena_bytes`, to the byte.
    """
    device = _core.DeviceMemory(model.core, options, list(layers), batch, list(settings))
    trained = [layer for layer in model.layers if layer.index in set(layers)]
    weights = sum(layer.weights for layer in trained) if options.train_weights else 0
    biases = 4 * sum(layer.biases for layer in trained)
    sums = device.sum_bytes
    host = _core.Trainer(model.core, options, list(layers), 1, 1, list(settings))
    state = host.optimizer_state().nbytes
    tables = _tables(options, host.layers(), batch)
    peak = peak_moment(device, layers)
    image = sum(b["bytes"] for b in peak.buffers if b["tensor"] == model.core.input_tensor)
    total = arena_bytes(model.core, options, layers, batch, settings)
    return Memory(
        frozen=sum(x.weights + 4 * x.biases for x in model.layers) - weights - biases,
        weights=weights,
        biases=biases,
        activations=device.activation_bytes - image,
        input=image,
        weight_gradients=sums,
        optimizer=state,
        tables=tables,
        buffers=total - weights - biases - device.activation_bytes - sums - state - tables,
    )


def _tables(options: _core.Options, layers: Sequence[dict[str, Any]], batch: int) -> int:
    """Losses of every query, their average over the batch, states of samples and of signs."""
    queried = [x for x in layers if x["estimator"] != "closed_form"]
    if options.directions == "coordinate":  # weights: a sum over the batch
        rows = {"weight_perturbation": 1, "node_perturbation": batch}
        losses = sum(rows[x["estimator"]] * int(x["queries"]) for x in queried)
        return _LOSS * losses + _SAMPLE * batch
    queries: list[int] = [options.queries]
    if options.scope == "layer_wise":
        queries = [x["queries"] for x in queried]
    losses = batch * sum(queries) + max(queries, default=0)
    rademacher = options.directions == "rademacher"
    streams = max(x["queries"] for x in layers) if rademacher else 0
    return _LOSS * losses + _SAMPLE * batch + _STREAM * streams
