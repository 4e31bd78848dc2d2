"""The zeroth-order methods: presets of the core's trainer."""

from __future__ import annotations

from pmt.methods.method import Method

__all__ = ["ZEROTH_ORDER"]

_PAPER = "Zhao, Li, Young, Zhang: Poor Man's Training on MCUs (arXiv:2411.05873)"

ZEROTH_ORDER: dict[str, Method] = {
    "default": Method("what measured best here", "this package, docs/algorithm.md"),
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
    "zo_momentum": Method(
        "the default with momentum",
        "Polyak 1964; on zeroth-order gradients Malladi et al. 2023 (arXiv:2305.17333)",
        options={"optimiser": "momentum"},
    ),
    "zo_adam": Method(
        "the default with Adam",
        "Kingma, Ba 2015 (arXiv:1412.6980); on zeroth-order gradients Chen et al. 2019 "
        "(arXiv:1910.06513)",
        options={"optimiser": "adam"},
    ),
    "bias_only": Method(
        "biases alone, by perturbing them",
        "Cai et al. 2020, TinyTL (arXiv:2007.11622), with zeroth-order gradients",
        options={"train_weights": False, "align_images": 0},
    ),
    "last_layer": Method(
        "the last linear layer, by its exact gradient",
        "softmax regression on the features of the network",
        options={"layers": "head", "align_images": 0},
    ),
}
