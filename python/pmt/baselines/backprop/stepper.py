"""Steps of back-propagation: gradients through torch, the update in whole steps or real numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pmt import _core
from pmt._core import DEAD_CHANNEL_SCALE, LARGEST_WEIGHT
from pmt._util.arrays import (
    Array,
    BoolArray,
    DoubleArray,
    FloatArray,
    Int8Array,
    Int32Array,
    Int64Array,
)
from pmt.baselines.backprop.options import BackpropOptions, Rounding
from pmt.baselines.backprop.scheme import LayerUpdate, UpdateScheme
from pmt.datasets import Dataset
from pmt.model import ImageScores, Model, scores_of_logits
from pmt.net.graph import Graph, Op
from pmt.train.stepper import Stepper, batch_figures

_LARGEST_UPDATE = 16384.0  # as in the core: Q15.16 stays inside int32
_INT32 = np.iinfo(np.int32)


class BackpropStepper(Stepper):
    """Takes the steps of a run with back-propagation; 0 threads leaves torch's as they are.

    With ``arithmetic="int8"`` weights are in weight steps and biases in accumulator steps; the
    gradient's division by the step squared (quantization-aware scaling) makes the descent that of
    the real weights. With ``"float32"`` all are real. Channels with a weight scale below 1e-6 are
    dead and stay as they are. Where fewer channels are trained than there are, the scheme must
    choose them.
    """

    def __init__(
        self, model: Model, scheme: UpdateScheme, options: BackpropOptions, threads: int
    ) -> None:
        from pmt.baselines.backprop.networks import FloatNetwork, IntegerNetwork

        self.model = model
        self.scheme = scheme
        self.options = options
        self.threads = threads
        self.floats = options.arithmetic == "float32"
        self.network: Any = (FloatNetwork if self.floats else IntegerNetwork)(model)
        self.network.requires_grad_(False)
        self.weights: dict[int, _Parameters] = {}
        self.biases: dict[int, _Parameters] = {}
        graph = model.to_graph()
        for update in scheme.layers:
            weights, bias = (
                parameters[str(update.op)]
                for parameters in (self.network.weights, self.network.biases)
            )
            weights.requires_grad_(update.channels > 0)
            bias.requires_grad_(update.bias)
            if update.channels > 0:
                self.weights[update.op] = _weights(weights, graph, update, options)
            if update.bias:
                self.biases[update.op] = _bias(bias, graph, update, options)

    def step(
        self, images: Int8Array, labels: Int64Array, step: int, learning_rate: float
    ) -> dict[str, Any]:
        """Take one step; see :meth:`pmt.train.stepper.Stepper.step`."""
        logits = self.network.add_gradients(images, labels, self.threads)
        losses, correct = _core.cross_entropy(logits, labels)
        self.steps_taken += 1
        for op, weights in self.weights.items():
            bits = None
            if not self.floats and self.options.rounding == "stochastic":
                bits = random_bits(self.options.seed, step, op, weights.parameter.numel())
            weights.update(learning_rate, bits)
        for biases in self.biases.values():
            biases.update(learning_rate)
        return {**batch_figures(losses, correct), "changed": self._write_back()}

    def state(self) -> dict[str, Array]:
        """Return momentum and, where parameters are not whole numbers, the parameters."""
        found: dict[str, Array] = {}
        for name, each in self._named():
            if self.floats or self.options.rounding == "shadow":
                found[name] = each.values().copy()
            if self.options.momentum > 0.0:
                found[f"{name}_momentum"] = each.direction.copy()
        return found

    def load_state(self, state: Mapping[str, Array]) -> None:
        """Restore a state of :meth:`state`; a ValueError tells of one of another training."""
        expected = self.state()
        if set(state) != set(expected):
            names = ", ".join(sorted(set(state) ^ set(expected)))
            raise ValueError(f"the checkpoint's arrays are not those of this training: {names}")
        for name, array in expected.items():
            if state[name].shape != array.shape or state[name].dtype != array.dtype:
                raise ValueError(
                    f"{name}: the checkpoint has {state[name].dtype} {state[name].shape}, this "
                    f"training {array.dtype} {array.shape}"
                )
        for name, each in self._named():
            if name in state:
                each.values()[...] = state[name]
            if self.options.momentum > 0.0:
                each.direction = np.array(state[f"{name}_momentum"])

    def score_images(self, model: Model, data: Dataset, threads: int) -> ImageScores:
        """Measure the network that is trained: the int8 model, or the float network."""
        if not self.floats:
            return super().score_images(model, data, threads)
        logits = self.network.logits(model.prepare(data.images), self.threads)
        return scores_of_logits(logits, data.labels)

    def _named(self) -> list[tuple[str, _Parameters]]:
        return [
            *((f"weights{op}", weights) for op, weights in self.weights.items()),
            *((f"bias{op}", biases) for op, biases in self.biases.items()),
        ]

    def _write_back(self) -> int:
        """Give the model the parameters; return how many int8 weights changed."""
        changed = 0
        for update in self.scheme.layers:
            weights, bias = self.network.parameters_as_integers(update.op)
            old = self.model.core.weights(update.op)
            changed += int((weights.reshape(old.shape) != old).sum())
            self.model.core.set_parameters(update.op, weights.reshape(old.shape), bias)
        return changed


class _Parameters:
    """One trained array of a network: updated in place, from its ``grad``, where ``mask`` is."""

    def __init__(
        self,
        parameter: Any,
        mask: Array,
        scales: Array,
        options: BackpropOptions,
        *,
        is_bias: bool = False,
    ) -> None:
        self.parameter = parameter
        self.mask = mask
        self.options = options
        self.is_bias = is_bias
        self.dtype = self.values().dtype
        scaled = options.arithmetic == "int8" and options.quantization_aware_scaling
        self.factor = np.asarray(scales**-2 if scaled else 1.0, self.dtype)
        self.direction: Array = np.zeros(self.values().shape, self.dtype)

    def values(self) -> Array:
        """Return the parameters: an array that shares the network's memory."""
        found: Array = self.parameter.detach().numpy()
        return found

    def update(self, learning_rate: float, bits: Int32Array | None = None) -> None:
        """Take one step and clear the gradient."""
        old, options = self.values(), self.options
        gradient = self._taken_gradient()
        if options.weight_decay > 0.0 and not self.is_bias:
            gradient = gradient + np.float32(options.weight_decay) * old
        direction = np.where(self.mask, gradient, np.zeros((), self.dtype))
        if options.momentum > 0.0:
            direction = self.direction * self.dtype.type(options.momentum) + direction
            self.direction = direction
        with np.errstate(over="ignore", invalid="ignore"):
            update = direction * self.dtype.type(learning_rate)
        if options.arithmetic == "float32":
            old[...] = old - update
        elif self.is_bias:
            old[...] = updated_bias(old, update, options.rounding)
        else:
            old[...] = updated_weights(old, update, options.rounding, bits)

    def _taken_gradient(self) -> Array:
        """Return the scaled gradient and clear it; zeros if the loss did not depend on it."""
        gradient = self.parameter.grad
        self.parameter.grad = None
        if gradient is None:
            return np.zeros(self.values().shape, self.dtype)
        scaled: Array = gradient.numpy() * self.factor
        return scaled


def _weights(
    parameter: Any, graph: Graph, update: LayerUpdate, options: BackpropOptions
) -> _Parameters:
    op, scales, live = _channels(graph, update)
    assert op.weights is not None
    shape = (-1,) if op.kind == "depthwise_conv2d" else (-1, *[1] * (op.weights.ndim - 1))
    mask = live.reshape(shape) & _channel_mask(op, update, graph)
    return _Parameters(parameter, mask, np.where(live, scales, 1.0).reshape(shape), options)


def _bias(
    parameter: Any, graph: Graph, update: LayerUpdate, options: BackpropOptions
) -> _Parameters:
    op, scales, live = _channels(graph, update)
    steps = np.where(live, scales * graph.tensors[op.inputs[0]].scale, 1.0)
    return _Parameters(parameter, live, steps, options, is_bias=True)


def _channels(graph: Graph, update: LayerUpdate) -> tuple[Op, Array, Array]:
    """Return a layer, the scales of its output channels, and which of these are not dead."""
    op = graph.ops[update.op]
    assert op.weight_scales is not None
    scales = op.weight_scales.astype(np.float64)
    return op, scales, scales >= DEAD_CHANNEL_SCALE


def _channel_mask(op: Op, update: LayerUpdate, graph: Graph) -> BoolArray:
    assert op.weights is not None
    source = graph.tensors[op.inputs[0]]
    count = source.elements if op.kind == "fully_connected" else source.channels
    if update.channels in (0, count):
        return np.full((), update.channels > 0, np.bool_)
    if not update.chosen:
        raise ValueError(
            f"{op.name}: {update.channels} of {count} channels are to be trained, but none is "
            "chosen; choose them first"
        )
    mask = np.zeros(count, np.bool_)
    mask[list(update.chosen)] = True
    if op.kind == "depthwise_conv2d":
        return np.repeat(mask, op.weights.shape[-1] // count)
    return mask


def random_bits(seed: int, step: int, layer: int, count: int) -> Int32Array:
    """Return ``count`` numbers 0..65535, a function of the seed, the step and the layer."""
    # Only raw 64-bit draws: NumPy promises their stream.
    draws = np.random.PCG64(np.random.SeedSequence([seed, step, layer])).random_raw(-(-count // 4))
    return np.asarray(draws, "<u8").view("<u2")[:count].astype(np.int32)


def updated_weights(
    weights: FloatArray, update: FloatArray, rounding: Rounding, bits: Int32Array | None = None
) -> FloatArray:
    """Subtract an update from weights, both in weight steps, and clip to -127..127.

    Weights are whole numbers, except with ``"shadow"``; where the update is not a number nothing
    changes. ``bits`` are random numbers 0..65535, one for each weight: stochastic rounding makes of
    the update ``floor(update + bits / 65536)``, whose mean is the update.
    """
    bounded = _bounded(update, _LARGEST_UPDATE)
    if rounding == "stochastic":
        assert bits is not None
        fixed = (bounded * 65536.0).astype(np.int32)
        result = weights - ((fixed + bits.reshape(fixed.shape)) >> 16)
    elif rounding == "nearest":
        result = weights - np.rint(bounded)
    elif rounding == "truncation":
        result = np.trunc(weights - bounded)
    else:
        result = weights - bounded
    return np.clip(result, -LARGEST_WEIGHT, LARGEST_WEIGHT).astype(np.float32)


def updated_bias(bias: DoubleArray, update: DoubleArray, rounding: Rounding) -> DoubleArray:
    """Subtract an update from biases in accumulator steps, and clip to int32.

    An output step is hundreds of bias steps, so ``"stochastic"`` too rounds to the nearest, as the
    core does; ``"truncation"`` cuts off the update, as a conversion to int32 does.
    """
    bounded = _bounded(update, float(_INT32.max))
    if rounding == "truncation":
        bounded = np.trunc(bounded)
    elif rounding != "shadow":
        bounded = np.rint(bounded)
    return np.asarray(np.clip(bias - bounded, _INT32.min, _INT32.max), np.float64)


def _bounded(update: Array, most: float) -> Array:
    return np.asarray(np.nan_to_num(np.clip(update, -most, most), nan=0.0))
