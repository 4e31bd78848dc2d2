"""Every choice of back-propagation training."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

__all__ = ["Arithmetic", "BackpropOptions", "Rounding"]

Arithmetic = Literal["int8", "float32"]
Rounding = Literal["stochastic", "nearest", "truncation", "shadow"]


@dataclass(frozen=True)
class BackpropOptions:
    """Options of a training run with back-propagation.

    Attributes
    ----------
    layers : str
        What to train: names of blocks or layers, separated by commas.
    epochs : int
        Passes over the data.
    macs : int
        Budget of multiply-accumulates. If it is not 0, training ends after the last whole step
        within it instead of after ``epochs``, and the learning rate's schedule spans it.
    batch : int
        Samples of a step.
    learning_rate : float
        Factor of the gradient. With quantisation-aware scaling and with ``arithmetic="float32"`` it
        is that of gradient descent on real weights; without the scaling, on weight steps. The
        default suits 14 layers of MCUNet; with all 43 it diverges, a tenth of it does not.
    final_learning_rate : float
        Fraction of ``learning_rate`` that the cosine schedule ends at.
    warmup_epochs : int
        First epochs of the run, in which the learning rate rises from 0 along a line.
    seed : int
        Seed of the order of samples and of stochastic rounding, 0..2**32-1.
    arithmetic : {"int8", "float32"}
        Train the int8 network, or the float network that it stands for. What is measured and
        reported is the network that is trained; the model itself gets the float network's
        parameters quantised with the scales it has.
    rounding : {"stochastic", "nearest", "truncation", "shadow"}
        What becomes of an update of int8 weights. The first three store nothing but int8: the
        update is rounded to whole steps at random so that it is right on average, or to the
        nearest, or the new weight is cut off towards zero. ``"shadow"`` keeps float32 copies that
        are trained and rounded in each forward pass: four more bytes for each weight, and what
        published figures of int8 training use. Without effect with ``arithmetic="float32"``.
    quantisation_aware_scaling : bool
        Divide a gradient by its weight's scale squared (biases: by that of an accumulator). Without
        effect with ``arithmetic="float32"``.
    momentum : float
        Share of the last update's direction that is kept, 0..1 (1 excluded). It takes four bytes
        for each trained parameter.
    weight_decay : float
        Decay of weights, not of biases, for each unit of learning rate.
    train_weights : bool
        Train weights.
    train_bias : bool
        Train biases.
    """

    layers: str = "all"
    epochs: int = 10
    macs: int = 0
    batch: int = 100
    learning_rate: float = 0.003
    final_learning_rate: float = 0.0
    warmup_epochs: int = 0
    seed: int = 1
    arithmetic: Arithmetic = "int8"
    rounding: Rounding = "stochastic"
    quantisation_aware_scaling: bool = True
    momentum: float = 0.0
    weight_decay: float = 0.0
    train_weights: bool = True
    train_bias: bool = True

    def __post_init__(self) -> None:
        for name, low, high, why in (
            ("epochs", 1, 10**6, ""),
            ("macs", 0, 10**18, " (0 is no budget)"),
            ("batch", 1, 10**6, ""),
            ("warmup_epochs", 0, 10**6, ""),
            ("seed", 0, 2**32 - 1, ""),
        ):
            _check_integer(name, getattr(self, name), low, high, why)
        if not math.isfinite(self.learning_rate) or self.learning_rate <= 0.0:
            raise ValueError(f"learning_rate={self.learning_rate!r} must be a finite number > 0")
        for name, rule, holds in (
            ("final_learning_rate", "0..1, a fraction of learning_rate", _up_to_one),
            ("momentum", "0 or more, and less than 1", lambda value: 0.0 <= value < 1.0),
            ("weight_decay", "0..1", _up_to_one),
        ):
            if not holds(getattr(self, name)):
                raise ValueError(f"{name}={getattr(self, name)!r} must be {rule}")
        for name, values in (
            ("arithmetic", get_args(Arithmetic)),
            ("rounding", get_args(Rounding)),
        ):
            if getattr(self, name) not in values:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is unknown; choose one of {', '.join(values)}"
                )
        if not self.train_weights and not self.train_bias:
            raise ValueError(
                "train_weights=False and train_bias=False leave nothing to train; turn one on"
            )

    def replace(self, **changes: Any) -> BackpropOptions:
        """Return a copy with some options changed.

        Raises
        ------
        ValueError
            If an option is unknown or its value is outside its range.
        """
        known = [field.name for field in dataclasses.fields(self)]
        for name in changes:
            if name not in known:
                raise ValueError(f"unknown option {name!r}; options are {', '.join(known)}")
        return dataclasses.replace(self, **changes)


def _up_to_one(value: float) -> bool:
    return 0.0 <= value <= 1.0


def _check_integer(name: str, value: object, low: int, high: int, why: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}={value!r} must be an int")
    if not low <= value <= high:
        raise ValueError(f"{name}={value!r} must be {low}..{high}{why}")
