"""Losses of a training run: the core's own by name, and Python callables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from pmt import _core
from pmt._util.arrays import FloatArray
from pmt._util.text import counted
from pmt.datasets import Dataset
from pmt.model import Model
from pmt.train.option_fields import Words

LossFunction: TypeAlias = Callable[[FloatArray, Any], Any]

BINARY = "binary_cross_entropy"
_FUNCTION = "function"  # the core's word for a callable of the host's
_PREFIX = "python:"  # of a callable's name, as options and config.toml hold it


@dataclass(frozen=True)
class LossNames(Words):
    """The core's losses, or the name of a Python callable."""

    def check(self, name: str, value: object) -> Any:
        """Return the word; refuse any other one."""
        if isinstance(value, str) and is_function(value):
            return value
        if callable(value):
            raise TypeError(
                f"{name}={value!r} is a callable, which options do not hold; pass it to the "
                f"trainer: pmt.ZOTrainer(options, {name}=...)"
            )
        return super().check(name, value)

    @classmethod
    def of_core(cls) -> LossNames:
        """Return the losses that the core computes by itself."""
        return cls(tuple(word for word in _core.losses() if word != _FUNCTION))


def is_function(loss: str) -> bool:
    """Whether an option's loss is the name of a callable."""
    return loss.startswith(_PREFIX) and len(loss) > len(_PREFIX)


def function_name(function: LossFunction) -> str:
    """Return the name by which options and ``config.toml`` hold a callable."""
    return _PREFIX + str(getattr(function, "__name__", type(function).__name__))


def core_word(loss: str) -> str:
    """Return the core's word of a loss."""
    return _FUNCTION if is_function(loss) else loss


def reads(loss: str) -> _core.LossTraits:
    """Return the inputs and properties of a loss."""
    return _core.losses()[core_word(loss)]


def reads_labels(loss: str) -> bool:
    """Whether a loss reads labels; a callable may, and so may a loss of a user's own trainer."""
    traits = _core.losses().get(loss)
    return traits is None or traits.needs_labels


def check_one_output(loss: str, model: Model) -> None:
    """Raise a ValueError if a loss compares outputs with each other, and a model has one."""
    if model.classes == 1 and not reads(loss).takes_targets:
        raise ValueError(
            f"loss={loss!r} compares outputs with each other, and the model has one; use "
            f"loss={BINARY!r} with labels 0 and 1, or one of {_takers(but=BINARY)}"
        )


def check_output(loss: str, data: Dataset, model: Model) -> None:
    """Raise a ValueError if a model of features or one output cannot be trained by a loss.

    Or, of features, on class labels.
    """
    check_one_output(loss, model)
    if model.is_classifier:
        return
    if not reads(loss).takes_targets:
        raise ValueError(
            f"loss={loss!r} reads logits of classes, and the model gives {model.output_text}; use "
            f"one of {_takers()}"
        )
    if data.has_class_labels:
        raise ValueError(
            f"data set {data.name!r} has class labels, and the model gives {model.output_text}; "
            "give float targets, Dataset.with_targets(x, y), or a callable loss that needs no "
            "labels, and Dataset.unlabeled(x)"
        )


def check_labels(loss: str, data: Dataset, model: Model) -> None:
    """Raise a ValueError if a data set lacks the labels that a loss needs, or they are too far."""
    traits, classes = reads(loss), model.classes
    if data.has_targets:
        if not traits.takes_targets:
            raise ValueError(
                f"data set {data.name!r} holds float targets, which loss={loss!r} does not take; "
                f"use one of {_takers()}, or integer labels"
            )
        if data.labels.shape[1] != classes:
            raise ValueError(
                f"data set {data.name!r} holds {data.labels.shape[1]} targets per image, the model "
                f"has {counted(classes, 'output')}; give one target per output"
            )
        _check_range(loss, data, model)
    elif not data.is_labeled and traits.needs_labels:
        raise ValueError(
            f"data set {data.name!r} has no labels, which loss={loss!r} needs; use loss='entropy' "
            "or a callable that needs none, or label the images"
        )


def _check_range(loss: str, data: Dataset, model: Model) -> None:
    """Raise a ValueError if a target is so far away that the loss has no gradient, or no end."""
    low, high = float(data.labels.min()), float(data.labels.max())
    found = f"data set {data.name!r} holds targets from {low:g} to {high:g}"
    if loss == BINARY and not 0 <= low <= high <= 1:
        raise ValueError(f"{found}: loss={loss!r} takes probabilities, 0 to 1")
    least, most = _core.target_range(model.core)
    if loss != "squared_error" or least <= low <= high <= most:
        return
    output = model.core.tensors()[model.core.output_tensor]
    ends = [output["scale"] * (end - output["zero_point"]) for end in (-128, 127)]
    span = f"{ends[0]:g} to {ends[1]:g}"
    rule = f"has a gradient from {least:g} to {most:g} with this model, whose output is {span}"
    if least > most:
        widest = 2 * (ends[1] - least)
        rule = f"takes outputs of at most {widest:g} from end to end, and this model's is {span}"
    raise ValueError(
        f"{found}: loss={loss!r} {rule}; scale the targets, and quantize a model for them"
    )


def _takers(but: str = "") -> str:
    """Return the losses that take float targets, less one, for an error."""
    losses = _core.losses().items()
    takers = ", ".join(name for name, one in losses if one.takes_targets and name != but)
    return takers.replace(_FUNCTION, "a callable")
