"""The head as it was before it was trained alone, for its training once more on all images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.model import Model

__all__ = ["HeadStart"]

_WEIGHTS, _BIAS = _STATE = ("head_start_weights", "head_start_bias")


class HeadStart:
    """Parameters of the last layer before its training.

    Training it twice as long would fit the noise of its images, so that a second training begins
    where the first one began.
    """

    def __init__(self) -> None:
        self._parameters: dict[str, npt.NDArray[Any]] = {}

    def take(self, model: Model) -> None:
        """Take the head of a model in."""
        last = model.core.op_count - 1
        weights, bias = model.core.weights(last), model.core.bias(last)
        self._parameters = {_WEIGHTS: np.array(weights), _BIAS: np.array(bias)}

    def give(self, model: Model) -> None:
        """Give a model that head; nothing where none was taken in."""
        if self._parameters:
            found = self._parameters
            model.core.set_parameters(model.core.op_count - 1, found[_WEIGHTS], found[_BIAS])

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that a checkpoint holds."""
        return dict(self._parameters)

    def load_state(self, state: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """Restore what :meth:`state` returned; return the other arrays."""
        self._parameters = {name: state[name] for name in _STATE if name in state}
        return {name: array for name, array in state.items() if name not in _STATE}
