"""The baselines with back-propagation, through torch."""

from __future__ import annotations

from pmt.baselines.backprop.presets import PRESETS
from pmt.methods.method import Method

__all__ = ["BACKPROP"]

_MCUTRAIN = "Lin et al. 2022, On-device training under 256KB memory (arXiv:2206.15472)"

_SUMMARIES = {
    "bp_fp32": ("all layers of the float network", "stochastic gradient descent"),
    "bp_int8": (
        "all layers in int8, with really rounded weights",
        f"{_MCUTRAIN}, with the stored weights rounded",
    ),
    "bp_int8_shadow": ("all layers in int8, with float32 copies of the weights", _MCUTRAIN),
    "bp_bias_only": ("biases alone", "Cai et al. 2020, TinyTL (arXiv:2007.11622)"),
    "bp_last_layer": ("the last layer alone", "softmax regression on the features"),
}

BACKPROP: dict[str, Method] = {
    **{
        name: Method(f"back-propagation: {what}", source, "backprop", PRESETS[name])
        for name, (what, source) in _SUMMARIES.items()
    },
    "mcutrain": Method(
        "back-propagation: a fixed part of the network",
        f"{_MCUTRAIN}: sparse update, 100 KB scheme",
        "mcutrain",
    ),
    "tinytrain": Method(
        "back-propagation: layers and channels that matter most to the data",
        "Kwon et al. 2024, TinyTrain (arXiv:2307.09988)",
        "tinytrain",
    ),
}
