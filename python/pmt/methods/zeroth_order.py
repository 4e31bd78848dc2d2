"""The zeroth-order methods: presets of the core's trainer."""

from __future__ import annotations

from typing import Any

from pmt.methods.method import Kind, Method

__all__ = ["ZEROTH_ORDER"]

_PAPER = "Zhao, Li, Young, Zhang: Poor Man's Training on MCUs (arXiv:2411.05873)"
_DEEPZERO = "Chen et al. 2024: DeepZero (arXiv:2310.02025)"
# The default's own additions, which methods of others do without.
_AS_PUBLISHED: dict[str, Any] = {"preparation": "none", "keep_best": False, "backtrack": False}
# Far from their goal, biases and head have more to learn than weights.
_UNPREPARED: dict[str, Any] = {"preparation": "none", "bias_rate": 10.0, "head_rate": 10.0}
# Steps that suit neither pooled nodes nor a prepared head.
_LONG_STEPS: dict[str, Any] = {"batch": 50, "learning_rate": 0.5, "head_rate": 1.0}
_COORDINATES = Kind("deepzero", "pmt.methods.deepzero:DeepZeroTrainer")

ZEROTH_ORDER: dict[str, Method] = {
    "default": Method("what measured best here", "this package, docs/concepts/algorithm.md"),
    "pooled": Method(
        "the default without preparation, biases and head much faster: for networks far from their "
        "new data",
        "this package, docs/concepts/algorithm.md",
        options=_UNPREPARED,
    ),
    "paper": Method(
        "weight or node perturbation by dimension, layer by layer",
        f"{_PAPER}, sections 3.1 and 3.2, as printed",
        preset="paper",
    ),
    "weight_layer_wise": Method(
        "weight perturbation, layer by layer",
        f"{_PAPER}, section 3.2.2",
        preset="paper",
        options={"rule": "weight"},
    ),
    "node_layer_wise": Method(
        "node perturbation, layer by layer",
        f"{_PAPER}, section 3.2.2",
        preset="paper",
        options={"rule": "node"},
    ),
    "weight_model_wise": Method(
        "weight perturbation of all layers at once",
        f"{_PAPER}, section 3.2.2",
        preset="paper",
        options={"rule": "weight", "scope": "model_wise"},
    ),
    "node_model_wise": Method(
        "node perturbation of all layers at once",
        f"{_PAPER}, section 3.2.2",
        preset="paper",
        options={"rule": "node", "scope": "model_wise"},
    ),
    "mezo": Method(
        "one direction per step for all layers and images, forwards and backwards",
        "Malladi et al. 2023: MeZO (arXiv:2305.17333), algorithm 1, on the integers",
        options={
            **_AS_PUBLISHED,
            "batch": 50,
            "queries": 2,
            "pairs": "antithetic",
            "scope": "model_wise",
            "rule": "weight",
            "sharing": "batch",
            "baseline": "clean",
            "step": "gradient",
            "mu_weight": 1,
            "head_rate": 1.0,
            "learning_rate": 1e-5,
            "final_learning_rate": 1.0,
        },
    ),
    "deepzero": Method(
        "the weights' gradient, one weight per query, with momentum",
        f"{_DEEPZERO}, coordinate-wise estimation without pruning",
        _COORDINATES,
    ),
    "deepzero_sparse": Method(
        "the same for a tenth of the weights, drawn anew every five epochs",
        f"{_DEEPZERO}, random gradient sparsity of 0.9",
        _COORDINATES,
        {"sparsity": 0.9},
    ),
    "bias_only": Method(
        "biases only, by one sign per channel",
        "Cai et al. 2020, TinyTL (arXiv:2007.11622), with zeroth-order gradients",
        options={**_UNPREPARED, "train_weights": False},
    ),
    "last_layer": Method(
        "the last linear layer, by its exact gradient",
        "softmax regression on the features of the network",
        options={**_AS_PUBLISHED, **_LONG_STEPS, "layers": "head"},
    ),
}
