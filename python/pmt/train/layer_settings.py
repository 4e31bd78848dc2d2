"""Settings that differ from layer to layer: queries, size of perturbation, estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt.train.options import TrainingOptions

__all__ = [
    "describe_layers",
    "settings_for_step",
    "settings_from_array",
    "settings_in_force",
    "settings_to_array",
]


def settings_in_force(trainer: _core.Trainer) -> list[_core.LayerSettings]:
    """Return the settings of a trainer's layers, one for each."""
    return [
        _core.LayerSettings(
            queries=layer["queries"],
            mu_weight=layer["mu_weight"],
            mu_node=layer["mu_node"],
            estimator=_core.Estimator[layer["estimator"]],
            regions=layer["regions"],
        )
        for layer in trainer.layers()
    ]


def settings_for_step(
    trainer: _core.Trainer,
    options: TrainingOptions,
    images: npt.NDArray[np.int8],
    labels: npt.NDArray[np.int64],
    step: int,
) -> list[_core.LayerSettings]:
    """Return the settings that a trainer would measure before a step; without measuring, its own.

    The first ``probe_samples`` images are used; the trainer stays as it is.
    """
    if not options.is_measured:
        return settings_in_force(trainer)
    probed = slice(options.probe_samples)
    measured = trainer.calibrate(images[probed], labels[probed], step)
    settings: list[_core.LayerSettings] = measured["settings"]
    return settings


def settings_to_array(settings: Sequence[_core.LayerSettings]) -> npt.NDArray[np.int32]:
    """Return settings as an array (layers, 5): queries, both mu, estimator, regions."""
    rows = [(s.queries, s.mu_weight, s.mu_node, int(s.estimator), s.regions) for s in settings]
    return np.array(rows, np.int32).reshape(-1, 5)


def settings_from_array(array: npt.NDArray[Any], layers: int) -> list[_core.LayerSettings]:
    """Return the settings of an array; raise a ValueError if it is none for so many layers."""
    if array.dtype != np.int32 or array.shape != (layers, 5):
        raise ValueError(
            f"layer_settings: {array.dtype} {array.shape} must be int32 ({layers}, 5), a row for "
            "each layer"
        )
    return [
        _core.LayerSettings(
            queries=queries,
            mu_weight=mu_weight,
            mu_node=mu_node,
            estimator=_core.Estimator(estimator),
            regions=regions,
        )
        for queries, mu_weight, mu_node, estimator, regions in array.tolist()
    ]


def describe_layers(layers: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the settings in force by layer name, from :meth:`_core.Trainer.layers`.

    ``estimator``, and unless that is exact ``queries`` and ``mu`` (in weight steps or output steps,
    as the estimator perturbs), ``regions`` where nodes are pooled.
    """
    described: dict[str, dict[str, Any]] = {}
    for layer in layers:
        estimator = layer["estimator"]
        one = described.setdefault(layer["name"], {"estimator": estimator})
        if estimator != "closed_form":
            which = "mu_weight" if estimator == "weight_perturbation" else "mu_node"
            one.update(queries=layer["queries"], mu=layer[which])
        if estimator == "pooled_perturbation":
            one["regions"] = layer["regions"]
    return described
