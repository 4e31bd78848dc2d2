"""The random directions of a layer's queries: those that the core's trainer draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt.train.options import TrainingOptions

__all__ = ["Directions"]

_WEIGHT_SIGNS, _BIAS_SIGNS = 0, 1  # purposes of a stream


@dataclass(frozen=True)
class Directions:
    """Signs as functions of (seed, step, layer, query, image): never stored, drawn again instead.

    Attributes
    ----------
    options : TrainingOptions
        Seed, generator, ``pairs`` and ``queries``.
    step : int
        Number of the training step.
    """

    options: TrainingOptions
    step: int

    @property
    def count(self) -> int:
        """Directions of a layer: one a query, or one for two that are antithetic."""
        queries = self.options.queries
        return queries // 2 if self.options.pairs == "antithetic" else queries

    def of_query(self, query: int) -> tuple[int, int]:
        """Return a query's direction, and 1, or -1 where it goes backwards."""
        if self.options.pairs == "antithetic":
            return query // 2, -1 if query % 2 else 1
        return query, 1

    def weights(self, layer: int, direction: int, owner: int, count: int) -> npt.NDArray[np.int8]:
        """Return the signs of a layer's weights; ``owner`` is the image, 0 where all share them."""
        return self._signs(layer, direction, owner, _WEIGHT_SIGNS, count)

    def biases(self, layer: int, direction: int, owner: int, count: int) -> npt.NDArray[np.int8]:
        """Return the signs of a layer's biases."""
        return self._signs(layer, direction, owner, _BIAS_SIGNS, count)

    def _signs(
        self, layer: int, direction: int, owner: int, purpose: int, count: int
    ) -> npt.NDArray[np.int8]:
        generator = self.options.generator
        seed = self.options.seed
        return _core.signs(generator, seed, self.step, layer, direction, owner, purpose, count)
