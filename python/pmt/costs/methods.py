"""Methods by name, and what each takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pmt.costs.backward_memory import Arithmetic
from pmt.costs.profile import Profile, profile_backward, profile_zeroth_order
from pmt.model import Model
from pmt.options import preset
from pmt.sparse_update.scheme import UpdateScheme, head_layer
from pmt.sparse_update.trainer import named_scheme

__all__ = ["BACKWARD", "METHODS", "OWN_LAYERS", "ZEROTH_ORDER", "profile"]

# Zeroth-order methods: the preset and what differs from it.
ZEROTH_ORDER: dict[str, tuple[str, dict[str, Any]]] = {
    "paper": ("paper", {}),
    "default": ("default", {}),
    "weight_layer_wise": ("paper", {"rule": "weight"}),
    "weight_model_wise": ("paper", {"rule": "weight", "scope": "model_wise"}),
    "node_layer_wise": ("paper", {"rule": "node"}),
    "node_model_wise": ("paper", {"rule": "node", "scope": "model_wise"}),
}


@dataclass(frozen=True)
class _Backward:
    """A back-propagation method: sizes of its numbers, images of a step, and what it trains."""

    arithmetic: Arithmetic
    batch: int
    scheme: Callable[[Model, str | None, str | None], UpdateScheme]


def _whole(model: Model, layers: str | None, _: str | None) -> UpdateScheme:
    return UpdateScheme.whole(model.select_layers(layers or "all"), model)


def _biases(model: Model, layers: str | None, _: str | None) -> UpdateScheme:
    return UpdateScheme.biases_of(model.select_layers(layers or "all"))


def _head(model: Model, layers: str | None, _: str | None) -> UpdateScheme:
    head = head_layer(model)
    if layers is None and head is None:
        raise ValueError("the network ends in no linear layer; name the last one with layers")
    return UpdateScheme.whole(model.select_layers(layers if layers else [head or 0]), model)


def _mcutrain(model: Model, layers: str | None, scheme: str | None) -> UpdateScheme:
    _refuse_layers(layers, "mcutrain")
    return named_scheme(model, scheme or "99KB")


def _tinytrain(model: Model, layers: str | None, scheme: str | None) -> UpdateScheme:
    _refuse_layers(layers, "tinytrain")
    if scheme is None:
        raise ValueError("tinytrain chooses by the data: give scheme=FILE of a choice it made")
    return named_scheme(model, scheme)


BACKWARD: dict[str, _Backward] = {
    "bp_fp32": _Backward(Arithmetic(value=4), 64, _whole),
    "bp_int8": _Backward(Arithmetic(), 64, _whole),
    "bp_int8_shadow": _Backward(Arithmetic(shadow=4), 64, _whole),
    "bp_bias_only": _Backward(Arithmetic(), 64, _biases),
    "last_layer": _Backward(Arithmetic(), 64, _head),
    "mcutrain": _Backward(Arithmetic(), 64, _mcutrain),
    "tinytrain": _Backward(Arithmetic(), 64, _tinytrain),
}
METHODS = (*ZEROTH_ORDER, *BACKWARD)
# Those that do not train whatever layers they are told.
OWN_LAYERS = ("last_layer", "mcutrain", "tinytrain")


def profile(
    model: Model,
    method: str,
    *,
    layers: str | None = None,
    batch: int | None = None,
    queries: int | None = None,
    scheme: str | None = None,
) -> Profile:
    """Count what a method takes.

    Parameters
    ----------
    model : Model
        The network.
    method : str
        One of :data:`METHODS`.
    layers : str, optional
        Names of blocks or layers; by default all that the method can train.
    batch : int, optional
        Images of a step, by default the method's own.
    queries : int, optional
        Queries for each image and layer, by default the method's own; nothing to
        back-propagation.
    scheme : str, optional
        For ``mcutrain`` and ``tinytrain``: a published scheme of MCUNet (``99KB`` by default) or a
        JSON file of a scheme.

    Returns
    -------
    Profile
        Work and memory.

    Raises
    ------
    ValueError
        If the method, a layer or the scheme is unknown, or a number is out of range.
    OSError
        If the scheme cannot be read.
    """
    if method in ZEROTH_ORDER:
        name, changes = ZEROTH_ORDER[method]
        given = {"layers": layers, "batch": batch, "queries": queries}
        given = {key: value for key, value in given.items() if value is not None}
        return profile_zeroth_order(model, method, preset(name, **{**changes, **given}))
    if method not in BACKWARD:
        raise ValueError(f"method={method!r} is unknown; choose one of {', '.join(METHODS)}")
    entry = BACKWARD[method]
    chosen = entry.scheme(model, layers, scheme)
    size = entry.batch if batch is None else batch
    return profile_backward(model, method, chosen, entry.arithmetic, batch=size)


def _refuse_layers(layers: str | None, method: str) -> None:
    if layers is not None:
        raise ValueError(f"layers={layers!r}: {method} takes its layers from a scheme")
