"""From a layer's sums to its new weights: Eq. 11, in the core's float32 operations and their order.

Every value here is one that the core computes, so that both give the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt.baselines.engines.directions import random_bits
from pmt.model import Model
from pmt.train.options import TrainingOptions

__all__ = ["LARGEST_WEIGHT", "LayerScales", "LayerSums", "updated"]

LARGEST_WEIGHT = 127
_INT32 = np.iinfo(np.int32)
_LARGEST_UPDATE = np.float32(16384.0)
_LARGEST_BIAS_STEP = np.float32(2097152.0)
_DEAD = np.float32(1e-6)
_ONE = np.float32(1.0)
_Float32 = npt.NDArray[np.float32]


class LayerScales:
    """What a layer's update depends on besides its sums.

    Parameters
    ----------
    model : Model
        The network.
    layer : int
        Op index.
    """

    def __init__(self, model: Model, layer: int) -> None:
        tensors, op = model.core.tensors(), model.core.ops()[layer]
        self.layer = layer
        self.weights: _Float32 = model.core.weight_scales(layer)
        self.input = np.float32(tensors[op["inputs"][0]]["scale"])
        self.output = np.float32(tensors[op["output"]]["scale"])
        self.channels = len(self.weights)
        self.depthwise = op["kind"] == "depthwise_conv2d"
        self.live = self.weights >= _DEAD

    @property
    def biases(self) -> _Float32:
        """Scale of each bias."""
        return self.input * self.weights

    def bias_mu(self, mu: int) -> npt.NDArray[np.int64]:
        """Size of a bias perturbation that moves the output about as far as mu of the weights."""
        steps = np.float32(mu) * self.output / np.where(self.live, self.biases, _ONE)
        rounded = np.maximum(np.rint(np.minimum(steps, _LARGEST_BIAS_STEP)), 1).astype(np.int64)
        return np.where(self.live, rounded, 0)

    def by_channel(self, weights: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Return a layer's weights as (channels, taps)."""
        flat = weights.reshape(-1)
        return (
            flat.reshape(-1, self.channels).T if self.depthwise else flat.reshape(self.channels, -1)
        )


@dataclass(frozen=True)
class LayerSums:
    """Sums of difference times sign, int64, and how many samples and sets of signs they are of."""

    weights: npt.NDArray[np.int64]
    bias: npt.NDArray[np.int64]
    samples: int
    sets: int


def updated(
    scales: LayerScales,
    options: TrainingOptions,
    step: int,
    learning_rate: float,
    sums: LayerSums,
    weights: npt.NDArray[np.int8],
    bias: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int32]]:
    """Return a layer's weights and biases after a step.

    Parameters
    ----------
    scales : LayerScales
        The layer.
    options : TrainingOptions
        Of the run.
    step : int
        Number of the step.
    learning_rate : float
        Of the step.
    sums : LayerSums
        Of the layer.
    weights, bias : ndarray
        From before the step.

    Returns
    -------
    weights : ndarray of int8
        Of the same shape.
    bias : ndarray of int32
        The same.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        weight, per_bias = _directions(scales, options, sums)
        rate = np.float32(learning_rate)
        if options.step == "normalised":
            for_weights, for_bias = _normalised(scales, rate, sums, weight, per_bias)
        else:
            for_weights = for_bias = rate * _norm_scaling(options, sums)
        updates = _times(scales.by_channel(sums.weights), (weight * for_weights)[:, None])
        bias_updates = _times(sums.bias, per_bias * for_bias)
    steps = _rounded(scales, options, step, updates)
    old = scales.by_channel(weights).astype(np.int32)
    new = np.clip(old - steps, -LARGEST_WEIGHT, LARGEST_WEIGHT)
    new = np.where(scales.live[:, None], new, old).astype(np.int8)
    flat = np.ascontiguousarray(new.T if scales.depthwise else new)
    new_weights: npt.NDArray[np.int8] = flat.reshape(weights.shape)
    if not options.train_bias:
        return new_weights, bias.copy()
    bounded = np.clip(bias_updates, -_LARGEST_BIAS_STEP, _LARGEST_BIAS_STEP)
    moved = bias.astype(np.int64) - np.rint(bounded).astype(np.int64)
    moved = np.where(scales.live, np.clip(moved, _INT32.min, _INT32.max), bias)
    return new_weights, moved.astype(np.int32)


def _directions(
    scales: LayerScales, options: TrainingOptions, sums: LayerSums
) -> tuple[_Float32, _Float32]:
    """Return what a channel's sums are multiplied by: the gradient's factor, scaled."""
    one_less = options.baseline == "leave_one_out" and options.pairs == "one_sided"
    divisor = np.float32(options.queries - int(one_less))
    mean = _ONE / (np.float32(_core.LOSS_ONE) * np.float32(sums.sets) * divisor)
    mu = scales.bias_mu(options.mu_weight)
    weight = np.full(scales.channels, mean / np.float32(options.mu_weight), np.float32)
    bias = np.where(mu == 0, np.float32(0.0), mean / np.maximum(mu, 1).astype(np.float32))
    if options.quantisation_aware_scaling:
        weight = weight * (_ONE / _squared(np.where(scales.live, scales.weights, _ONE)))
        bias = bias * (_ONE / _squared(np.where(scales.live, scales.biases, _ONE)))
    return weight, bias


def _squared(values: _Float32) -> _Float32:
    return values * values


def _times(sums: npt.NDArray[np.generic], factors: _Float32) -> _Float32:
    product = sums.astype(np.float32) * factors
    return np.where(np.isnan(product), np.float32(0.0), product)


def _norm_scaling(options: TrainingOptions, sums: LayerSums) -> np.float32:
    """Gradient-norm scaling, k / (k + d - 1)."""
    if options.gradient_norm_scaling == "none":
        return _ONE
    pairs = options.pairs == "antithetic"
    directions = np.float32(options.queries // 2 if pairs else options.queries)
    if options.gradient_norm_scaling == "queries_and_samples":
        directions = directions * np.float32(sums.samples)
    return np.float32(directions / (directions + np.float32(sums.weights.size) - _ONE))


def _normalised(
    scales: LayerScales, rate: np.float32, sums: LayerSums, weight: _Float32, bias: _Float32
) -> tuple[np.float32, np.float32]:
    """Factors that make the root mean square of the updates the learning rate."""
    updates = _times(scales.by_channel(sums.weights), weight[:, None])
    in_output_steps = _times(sums.bias, bias) * (scales.biases / scales.output)
    taps = np.float32(sums.weights.size) / np.float32(scales.channels)
    live = np.float32(scales.live.sum())
    weight_squares = _in_order(_in_order(_squared(updates))[scales.live])
    bias_squares = _in_order(_squared(in_output_steps)[scales.live])
    return _normalise(rate, weight_squares, live * taps), _normalise(rate, bias_squares, live)


def _in_order(values: _Float32) -> _Float32:
    """Sum along the last axis one by one; numpy's own sums choose their order."""
    if values.shape[-1] == 0:
        return np.zeros(values.shape[:-1], np.float32)
    return np.add.accumulate(values, axis=-1, dtype=np.float32)[..., -1]


def _normalise(rate: np.float32, squares: _Float32, count: np.float32) -> np.float32:
    if not squares > 0.0 or not np.isfinite(squares):
        return np.float32(0.0)
    return np.float32(rate / np.sqrt(squares / count))


def _rounded(
    scales: LayerScales, options: TrainingOptions, step: int, updates: _Float32
) -> npt.NDArray[np.int32]:
    bounded = np.clip(updates, -_LARGEST_UPDATE, _LARGEST_UPDATE)
    if options.rounding == "nearest":
        return np.rint(bounded).astype(np.int32)
    random = random_bits(options.seed, step, scales.layer, updates.size)
    fixed = (bounded * np.float32(65536.0)).astype(np.int32)
    return (fixed + scales.by_channel(random).astype(np.int32)) >> 16
