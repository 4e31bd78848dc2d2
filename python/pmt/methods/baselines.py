"""The methods that zeroth-order training is compared with: back-propagation, and no adaptation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt.baselines.backprop.options import PRESETS
from pmt.methods.method import Kind, Method
from pmt.model import Model
from pmt.train.costs.work import Cost
from pmt.train.option_fields import Options
from pmt.train.prepare.preparation import (
    ALIGN_IMAGES,
    ALIGN_RELIABILITY,
    ALIGN_WINDOWS,
    HEAD_EPOCHS,
    HEAD_LEARNING_RATE,
    PREPARATION,
)
from pmt.train.schedule import Schedule
from pmt.train.stepper import Stepper, batch_figures
from pmt.train.trainer import Trainer

__all__ = ["BACKPROP", "UNTRAINED", "NoAdaptation", "NoAdaptationOptions"]

_BACKPROP = Kind("backprop", "pmt.baselines.backprop.trainer:BackpropTrainer")
_SPARSE = "pmt.baselines.sparse_update.trainer"
_MCUTRAIN = "Lin et al. 2022, On-device training under 256KB memory (arXiv:2206.15472)"

_SUMMARIES = {
    "bp_fp32": ("all layers of the float network", "stochastic gradient descent"),
    "bp_int8": (
        "all layers in int8, with really rounded weights",
        f"{_MCUTRAIN}, with the stored weights rounded",
    ),
    "bp_int8_shadow": ("all layers in int8, with float32 copies of the weights", _MCUTRAIN),
    "bp_bias_only": ("biases only", "Cai et al. 2020, TinyTL (arXiv:2007.11622)"),
    "bp_last_layer": ("the last layer only", "softmax regression on the features"),
}

BACKPROP: dict[str, Method] = {
    **{
        name: Method(f"back-propagation: {trained}", source, _BACKPROP, PRESETS[name])
        for name, (trained, source) in _SUMMARIES.items()
    },
    "mcutrain": Method(
        "back-propagation: a fixed part of the network",
        f"{_MCUTRAIN}: sparse update, 100 KB scheme",
        Kind("mcutrain", f"{_SPARSE}:MCUTrainTrainer", chooses_layers=True),
    ),
    "tinytrain": Method(
        "back-propagation: layers and channels that matter most to the data",
        "Kwon et al. 2024, TinyTrain (arXiv:2307.09988)",
        Kind("tinytrain", f"{_SPARSE}:TinyTrainTrainer", chooses_layers=True),
    ),
}

_NO_ADAPTATION = Kind("no_adaptation", "pmt.methods.baselines:NoAdaptation")
UNTRAINED: dict[str, Method] = {
    "no_adaptation": Method(
        "the network as it is", "the lower bound of every comparison", _NO_ADAPTATION
    ),
    "preparation_only": Method(
        "alignment and the exact head, no step after them",
        "the start of every method that begins with them",
        _NO_ADAPTATION,
        {"preparation": "align+head"},
    ),
}


@dataclass(frozen=True)
class NoAdaptationOptions(Options):
    """Options that all trainers have; only those of the preparation have an effect here."""

    layers: str = "all"
    epochs: int = 0
    macs: int = 0
    batch: int = 1
    learning_rate: float = 0.0
    final_learning_rate: float = 0.0
    seed: int = 1
    preparation: str = PREPARATION("none")
    align_images: int = ALIGN_IMAGES(1000)
    align_windows: bool = ALIGN_WINDOWS(True)
    align_reliability: bool = ALIGN_RELIABILITY(True)
    head_epochs: int = HEAD_EPOCHS(12)
    head_learning_rate: float = HEAD_LEARNING_RATE(0.5)


class NoAdaptation(Trainer):
    """Measures the model on the held-out data, prepared at most, and takes no step.

    Parameters
    ----------
    options : NoAdaptationOptions, optional
        The preparation; other methods' names are taken and do nothing, so that methods can be
        swapped.
    threads : int
        Threads of the evaluation.
    **changes
        Options that differ.

    Raises
    ------
    ValueError
        If an option is unknown.
    """

    name = "no_adaptation"
    options: NoAdaptationOptions
    options_class = NoAdaptationOptions

    @property
    def chooses_state(self) -> bool:
        """Whether a run may end in another state than its last; no, the preparation is asked."""
        return False

    def cost(self, model: Model, *, samples: int | None = None) -> Cost:
        """Return a cost of nothing."""
        return Cost(forwards=0, macs=0)

    def schedule(self, model: Model, samples: int) -> Schedule:
        """Return a schedule of no steps, whatever the options say."""
        none = self.options.replace(epochs=0, macs=0, batch=1)
        return Schedule(none, samples)

    def stepper(self, model: Model, samples: int) -> Stepper:
        """Return a stepper that measures a batch and changes nothing; a run takes no such step."""
        return _Unchanged(model, self.threads)


class _Unchanged(Stepper):
    def __init__(self, model: Model, threads: int) -> None:
        self.model = model
        self.threads = threads

    def step(
        self,
        images: npt.NDArray[np.int8],
        labels: npt.NDArray[np.int64],
        step: int,
        learning_rate: float,
    ) -> dict[str, Any]:
        losses, correct = _core.cross_entropy(self.model.core.logits(images, self.threads), labels)
        self.steps_taken += 1
        return {**batch_figures(losses, correct), "changed": 0}
