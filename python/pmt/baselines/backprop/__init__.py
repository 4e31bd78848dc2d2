"""Back-propagation over the int8 graph: the baselines that forward passes are compared with.

Needs torch (``pip install "poor-mans-training[torch]"``); importing this package does not.
"""

from typing import TYPE_CHECKING

from pmt._util.lazy import lazy_names
from pmt.baselines.backprop.exact_gradient import ExactGradient, exact_gradient
from pmt.baselines.backprop.options import PRESETS, BackpropOptions, preset
from pmt.baselines.backprop.trainer import BackpropTrainer

if TYPE_CHECKING:
    from pmt.baselines.backprop.networks import FloatNetwork, IntegerNetwork
else:  # They derive from a class of torch, and are imported on first use.
    __getattr__ = lazy_names(__name__, {f"{__name__}.networks": ["FloatNetwork", "IntegerNetwork"]})

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
