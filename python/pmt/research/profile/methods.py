"""Trainers by the names of methods, as ``pmt profile`` compares them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pmt.baselines.backprop import presets
from pmt.baselines.backprop.scheme import head_layer
from pmt.baselines.backprop.trainer import BackpropTrainer
from pmt.baselines.sparse_update.trainer import MCUTrainTrainer, TinyTrainTrainer
from pmt.methods.zeroth_order import ZEROTH_ORDER
from pmt.model import Model
from pmt.research.profile.profile import Profile, profile
from pmt.train.options import TrainingOptions
from pmt.train.trainer import ZOTrainer
from pmt.train.training_run import Trainer

__all__ = ["METHODS", "OWN_LAYERS", "OWN_QUERIES", "profile_method", "zeroth_order_options"]

_COMPARED = (
    *("paper", "default", "weight_layer_wise", "weight_model_wise"),
    *("node_layer_wise", "node_model_wise", "mezo", "deepzero", "deepzero_sparse"),
)
_ZEROTH_ORDER: dict[str, dict[str, Any]] = {
    name: {"preset": ZEROTH_ORDER[name].preset, **ZEROTH_ORDER[name].options} for name in _COMPARED
}
METHODS = (*_ZEROTH_ORDER, *presets.PRESETS, "mcutrain", "tinytrain")
# Those that do not train whatever layers they are told.
OWN_LAYERS = ("bp_last_layer", "mcutrain", "tinytrain")
# Those whose number of queries is the method.
OWN_QUERIES = ("mezo",)


def profile_method(
    model: Model, method: str, *, scheme: str | None = None, **changes: Any
) -> Profile:
    """Count what a method takes.

    Parameters
    ----------
    model : Model
        The network.
    method : str
        One of :data:`METHODS`.
    scheme : str, optional
        For ``mcutrain`` and ``tinytrain``: a published scheme of MCUNet (``99KB`` by default) or a
        JSON file of a scheme.
    **changes
        Options that differ from the method's; those that are None, and queries where there are
        none, are left out.

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
    given = {key: value for key, value in changes.items() if value is not None}
    return profile(model, method, _trainer(model, method, scheme, given))


def zeroth_order_options(method: str, **changes: Any) -> TrainingOptions:
    """Return the options of a method that needs forward passes alone.

    Parameters
    ----------
    method : str
        One of those of :data:`METHODS`.
    **changes
        Options that differ from the method's; those that are None are left out.

    Returns
    -------
    TrainingOptions
        The options.

    Raises
    ------
    ValueError
        If the method is none of them, or a number is out of range.
    """
    if method not in _ZEROTH_ORDER:
        known = ", ".join(_ZEROTH_ORDER)
        raise ValueError(f"method={method!r} is no zeroth-order one; choose one of {known}")
    given = {key: value for key, value in changes.items() if value is not None}
    return ZOTrainer(threads=1, **{**_ZEROTH_ORDER[method], **given}).options


def _trainer(model: Model, method: str, scheme: str | None, given: Mapping[str, Any]) -> Trainer:
    if method in _ZEROTH_ORDER:
        return ZOTrainer(threads=1, **{**_ZEROTH_ORDER[method], **given})
    rest = {key: value for key, value in given.items() if key != "queries"}
    if method == "bp_last_layer" and "layers" not in rest:
        rest["layers"] = _last_layer(model)
    if method in presets.PRESETS:
        return BackpropTrainer(presets.preset(method, **rest), threads=1)
    if method == "mcutrain":
        return MCUTrainTrainer(threads=1, **{**rest, "scheme": scheme or "99KB"})
    if method == "tinytrain":
        return TinyTrainTrainer(threads=1, chosen=scheme or "", **rest)
    raise ValueError(f"method={method!r} is unknown; choose one of {', '.join(METHODS)}")


def _last_layer(model: Model) -> str:
    head = head_layer(model)
    if head is None:
        raise ValueError("the network ends in no linear layer; name the last one with layers")
    return next(layer.name for layer in model.layers if layer.index == head)
