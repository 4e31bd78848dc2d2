"""Zeroth-order training by weight perturbation, of whatever engine gives a loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt._core import LARGEST_WEIGHT
from pmt.baselines.engines.engine import Engine
from pmt.train.options import TrainingOptions
from pmt.train.stepper import Stepper, batch_figures

__all__ = ["EngineTrainer"]

_INT32 = np.iinfo(np.int32)
# Sums of difference times sign, of weights and of biases; how many samples and sets of signs.
_Sums = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int, int]
# The options that have one value here: what they would add needs more of an engine than a loss, or
# only the core has it.
_FIXED: dict[str, Any] = {
    "loss": "cross_entropy",
    "label_smoothing": 0.0,
    "rule": "weight",
    "directions": "rademacher",
    "sparsity": 0.0,
    "mu": "fixed",
    "mu_per_channel": False,
    "allocation": "uniform",
    "optimizer": "sgd",
    "train_weights": True,
    "preparation": "none",
}
_WEIGHT_SIGNS, _BIAS_SIGNS = 0, 1  # purposes of a stream


class EngineTrainer(Stepper):
    """Takes training steps on an engine, using only its losses.

    On :class:`pmt.baselines.engines.CoreEngine` a step leaves the bytes that
    :class:`pmt.ZOTrainer` leaves with the same options, seed and images.

    Parameters
    ----------
    engine : Engine
        Runs the network; its weights are trained.
    options : TrainingOptions
        With ``loss="cross_entropy"`` without smoothing, ``rule="weight"``,
        ``directions="rademacher"``, ``optimizer="sgd"``, no measured setting, weights trained; and
        ``int8_logits`` as the engine's.

    Raises
    ------
    ValueError
        If an option is one that an engine cannot serve, or a layer is unknown.
    """

    def __init__(self, engine: Engine, options: TrainingOptions) -> None:
        for name, value in {**_FIXED, "int8_logits": engine.int8_logits}.items():
            if getattr(options, name) != value:
                raise ValueError(
                    f"{name}={getattr(options, name)!r} must be {value!r} with this engine"
                )
        if options.gradient_norm_scaling == "measured":
            raise ValueError(
                "gradient_norm_scaling='measured' must be 'none', 'queries' or "
                "'queries_and_samples' with this engine"
            )
        self.engine = engine
        self.options = options
        self.layers = engine.model.select_layers(options.layers)
        self._core_options = options.to_core()
        self._bias_steps = {
            layer: _core.bias_steps(engine.model.core, layer, options.mu_weight)
            for layer in self.layers
        }
        self.forwards = 0  # perturbed ones, so far

    def step(
        self,
        images: npt.NDArray[np.int8],
        labels: npt.NDArray[np.int64],
        step: int,
        learning_rate: float,
    ) -> dict[str, Any]:
        """Take one step, see :meth:`pmt.train.stepper.Stepper.step`."""
        directions = _Directions(self.options, step)
        clean, correct = self.engine.losses(images, labels)
        alone = self.options.scope == "layer_wise"
        tables = [[layer] for layer in self.layers] if alone else [self.layers]
        new = {}
        for table in tables:
            losses = self._query(table, directions, images, labels)
            differences = self._differences(losses, clean)
            for layer in table:
                sums = self._sums(layer, directions, differences, len(labels))
                new[layer] = _core.updated(
                    self.engine.model.core,
                    self._core_options,
                    layer,
                    step,
                    learning_rate,
                    sums,
                    *self.engine.parameters(layer),
                )
        # All layers are estimated on the weights from before the step.
        changed = 0
        self.steps_taken += 1
        for layer, (weights, bias) in new.items():
            changed += int((weights != self.engine.parameters(layer)[0]).sum())
            self.engine.set_parameters(layer, weights, bias)
        return {**batch_figures(clean, correct), "changed": changed}

    @property
    def _shared(self) -> bool:
        return self.options.sharing == "batch"

    def _query(
        self,
        table: Sequence[int],
        directions: _Directions,
        images: npt.NDArray[np.int8],
        labels: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.int64]:
        """Return the losses of all images with each query's perturbation, (batch, queries)."""
        before = {layer: self.engine.parameters(layer) for layer in table}
        count = len(labels)
        groups = [slice(0, count)] if self._shared else [slice(n, n + 1) for n in range(count)]
        losses = np.empty((count, self.options.queries), np.int64)
        try:
            for owner, group in enumerate(groups):
                for query in range(self.options.queries):
                    for layer in table:
                        perturbed = self._perturbed(layer, directions, query, owner, *before[layer])
                        self.engine.set_parameters(layer, *perturbed)
                    losses[group, query], _ = self.engine.losses(images[group], labels[group])
        finally:
            for layer, parameters in before.items():
                self.engine.set_parameters(layer, *parameters)
        self.forwards += losses.size
        return losses

    def _perturbed(
        self,
        layer: int,
        directions: _Directions,
        query: int,
        owner: int,
        weights: npt.NDArray[np.int8],
        bias: npt.NDArray[np.int32],
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int32]]:
        direction, sign = directions.of_query(query)
        mu = sign * self.options.mu_weight
        signs = directions.weights(layer, direction, owner, weights.size).reshape(weights.shape)
        moved = weights.astype(np.int32) + mu * signs.astype(np.int32)
        moved = np.clip(moved, -LARGEST_WEIGHT, LARGEST_WEIGHT).astype(np.int8)
        if not self.options.train_bias:
            return moved, bias
        bias_steps = sign * self._bias_steps[layer].astype(np.int64)
        shifted = bias + bias_steps * directions.biases(layer, direction, owner, bias.size)
        return moved, np.clip(shifted, _INT32.min, _INT32.max).astype(np.int32)

    def _differences(
        self, losses: npt.NDArray[np.int64], clean: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int64]:
        """Return the losses less their baselines, for each set of signs: (sets, queries)."""
        queries = self.options.queries
        baseline: npt.NDArray[np.int64] = clean.astype(np.int64)
        if self.options.baseline == "leave_one_out":
            baseline = _divided(losses.sum(axis=1), queries)
        bound = _INT32.max // queries
        differences: npt.NDArray[np.int64] = np.clip(losses - baseline[:, None], -bound, bound)
        if self._shared:
            return _divided(differences.sum(axis=0), len(losses))[None]
        return differences

    def _sums(
        self,
        layer: int,
        directions: _Directions,
        differences: npt.NDArray[np.int64],
        samples: int,
    ) -> _Sums:
        """Draw the signs again, and add them up times their differences."""
        weights, bias = self.engine.parameters(layer)
        weight_sums = np.zeros(weights.size, np.int64)
        bias_sums = np.zeros(bias.size, np.int64)
        if self.options.pairs == "antithetic":
            differences = differences[:, 0::2] - differences[:, 1::2]
        for owner, row in enumerate(differences):
            for direction, difference in enumerate(row):
                weight_sums += difference * directions.weights(
                    layer, direction, owner, weights.size
                ).astype(np.int64)
                bias_sums += difference * directions.biases(
                    layer, direction, owner, bias.size
                ).astype(np.int64)
        return weight_sums, bias_sums, samples, len(differences)


@dataclass(frozen=True)
class _Directions:
    """The core trainer's signs of one step: never stored, drawn again instead."""

    options: TrainingOptions
    step: int

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


def _divided(values: npt.NDArray[np.int64], divisor: int) -> npt.NDArray[np.int64]:
    """Divide to the nearest, halves away from zero."""
    magnitude: npt.NDArray[np.int64] = (np.abs(values) + divisor // 2) // divisor
    return np.sign(values) * magnitude
