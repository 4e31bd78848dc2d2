"""Back-propagation over the int8 graph: the baselines that forward passes are compared with.

Needs torch (``pip install "poor-mans-training[torch]"``); importing this package does not.
"""

from typing import Any

from pmt.baselines.backprop.exact_gradient import ExactGradient, exact_gradient
from pmt.baselines.backprop.options import PRESETS, BackpropOptions, preset
from pmt.baselines.backprop.trainer import BackpropTrainer

__all__ = [
    "PRESETS",
    "BackpropOptions",
    "BackpropTrainer",
    "ExactGradient",
    "FloatNetwork",
    "IntegerNetwork",
    "exact_gradient",
    "preset",
]


def __getattr__(name: str) -> Any:
    # They derive from a class of torch, and are imported on first use.
    if name in ("FloatNetwork", "IntegerNetwork"):
        from pmt.baselines.backprop import networks

        return getattr(networks, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
