"""Gradient descent on the parameters of a network, in real numbers or in whole steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.baselines.backprop.options import BackpropOptions, Rounding
from pmt.baselines.backprop.scheme import LayerUpdate, UpdateScheme
from pmt.net.graph import Graph, Op
from pmt.net.image_limits import DEAD_CHANNEL_SCALE, LARGEST_WEIGHT

__all__ = ["Descent", "random_bits", "updated_bias", "updated_weights"]

_LARGEST_UPDATE = 16384.0  # as in the core: Q15.16 stays inside int32
_INT32 = np.iinfo(np.int32)

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]


class Descent:
    """Updates what a scheme trains, from gradients; keeps momentum and what rounding needs.

    With ``arithmetic="int8"`` weights are in weight steps and biases in accumulator steps; the
    gradient's division by the step squared (quantization-aware scaling) makes the descent that of
    the real weights. With ``"float32"`` all are real. Channels with a weight scale below 1e-6 are
    dead and stay as they are. The network's ``weights`` and ``biases`` are updated in place, from
    their ``grad``; where fewer channels are trained than there are, the scheme must choose them.
    """

    def __init__(
        self, network: Any, graph: Graph, scheme: UpdateScheme, options: BackpropOptions
    ) -> None:
        self.options = options
        self.integers = options.arithmetic == "int8"
        self.scheme = scheme
        self.weights: dict[int, _Weights] = {}
        self.biases: dict[int, _Biases] = {}
        for update in scheme.layers:
            layer = _Layer(graph, update, options)
            if update.channels > 0:
                self.weights[update.op] = _Weights(layer, network.weights[str(update.op)])
            if update.bias:
                self.biases[update.op] = _Biases(layer, network.biases[str(update.op)])

    def update(self, step: int, learning_rate: float) -> None:
        """Take one step and clear the gradients."""
        for op, weights in self.weights.items():
            bits = None
            if self.integers and self.options.rounding == "stochastic":
                bits = random_bits(self.options.seed, step, op, weights.parameter.numel())
            weights.update(learning_rate, bits)
        for biases in self.biases.values():
            biases.update(learning_rate)

    def state(self) -> dict[str, Array]:
        """Return momentum and, where parameters are not whole numbers, the parameters."""
        found: dict[str, Array] = {}
        kept = not self.integers or self.options.rounding == "shadow"
        for name, each in self._named():
            if kept:
                found[name] = each.values().copy()
            if self.options.momentum > 0.0:
                found[f"{name}_momentum"] = each.direction.copy()
        return found

    def load_state(self, state: Mapping[str, Array]) -> None:
        """Restore a state of :meth:`state`.

        Raises
        ------
        ValueError
            If an array is missing, has another shape or type, or is not expected.
        """
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
                each.set_values(state[name])
            if self.options.momentum > 0.0:
                each.direction = np.array(state[f"{name}_momentum"])

    def _named(self) -> list[tuple[str, _Parameters]]:
        named: list[tuple[str, _Parameters]] = []
        named += [(f"weights{op}", weights) for op, weights in self.weights.items()]
        named += [(f"bias{op}", biases) for op, biases in self.biases.items()]
        return named


class _Layer:
    """Scales and masks of a layer, in the layouts of its parameters."""

    def __init__(self, graph: Graph, update: LayerUpdate, options: BackpropOptions) -> None:
        op = graph.ops[update.op]
        assert op.weights is not None
        assert op.weight_scales is not None
        self.options = options
        scales = op.weight_scales.astype(np.float64)
        depthwise = op.kind == "depthwise_conv2d"
        shape = (-1,) if depthwise else (-1, *[1] * (op.weights.ndim - 1))
        self.live = scales >= DEAD_CHANNEL_SCALE
        self.weight_mask = self.live.reshape(shape) & _channel_mask(op, update, graph)
        self.weight_scales = scales.reshape(shape)
        self.bias_scales = scales * graph.tensors[op.inputs[0]].scale

    def factor(self, scales: Array) -> Array | float:
        """Return the factor of a gradient under quantization-aware scaling."""
        scaled = self.options.arithmetic == "int8" and self.options.quantization_aware_scaling
        return np.where(self.live.reshape(scales.shape), scales, 1.0) ** -2 if scaled else 1.0


def _channel_mask(op: Op, update: LayerUpdate, graph: Graph) -> npt.NDArray[np.bool_]:
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


class _Parameters:
    """One trained array of a network."""

    def __init__(self, layer: _Layer, parameter: Any, factor: Array | float) -> None:
        self.layer = layer
        self.options = layer.options
        self.parameter = parameter
        self.dtype = self.values().dtype
        self.factor = np.asarray(factor, self.dtype)
        self.direction: Array = np.zeros(self.values().shape, self.dtype)

    def values(self) -> Array:
        """Return the parameters: an array that shares the network's memory."""
        found: Array = self.parameter.detach().numpy()
        return found

    def set_values(self, values: Array) -> None:
        """Change the network's parameters."""
        self.values()[...] = values

    def taken_gradient(self) -> Array:
        """Return the scaled gradient and clear it; zeros if the loss did not depend on it."""
        gradient = self.parameter.grad
        self.parameter.grad = None
        if gradient is None:
            return np.zeros(self.values().shape, self.dtype)
        scaled: Array = gradient.numpy() * self.factor
        return scaled

    def directed(self, gradient: Array, mask: Array) -> Array:
        """Return the direction of the update, after momentum, where parameters are trained."""
        direction = np.where(mask, gradient, np.zeros((), self.dtype))
        if self.options.momentum > 0.0:
            direction = self.direction * self.dtype.type(self.options.momentum) + direction
            self.direction = direction
        return direction


class _Weights(_Parameters):
    def __init__(self, layer: _Layer, parameter: Any) -> None:
        super().__init__(layer, parameter, layer.factor(layer.weight_scales))

    def update(self, learning_rate: float, bits: npt.NDArray[np.int32] | None) -> None:
        weights = self.values()
        gradient = self.taken_gradient()
        if self.options.weight_decay > 0.0:
            gradient = gradient + np.float32(self.options.weight_decay) * weights
        direction = self.directed(gradient, self.layer.weight_mask)
        with np.errstate(over="ignore", invalid="ignore"):
            update = direction * np.float32(learning_rate)
        if self.options.arithmetic == "float32":
            self.set_values(weights - update)
        else:
            self.set_values(updated_weights(weights, update, self.options.rounding, bits))


class _Biases(_Parameters):
    def __init__(self, layer: _Layer, parameter: Any) -> None:
        super().__init__(layer, parameter, layer.factor(layer.bias_scales))

    def update(self, learning_rate: float) -> None:
        direction = self.directed(self.taken_gradient(), self.layer.live)
        with np.errstate(over="ignore", invalid="ignore"):
            update = direction * self.dtype.type(learning_rate)
        if self.options.arithmetic == "float32":
            self.set_values(self.values() - update)
        else:
            self.set_values(updated_bias(self.values(), update, self.options.rounding))


def random_bits(seed: int, step: int, layer: int, count: int) -> npt.NDArray[np.int32]:
    """Return ``count`` numbers 0..65535, a function of the seed, the step and the layer."""
    # Only raw 64-bit draws: NumPy promises their stream.
    draws = np.random.PCG64(np.random.SeedSequence([seed, step, layer])).random_raw(-(-count // 4))
    return np.asarray(draws, "<u8").view("<u2")[:count].astype(np.int32)


def updated_weights(
    weights: FloatArray,
    update: FloatArray,
    rounding: Rounding,
    bits: npt.NDArray[np.int32] | None = None,
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


def updated_bias(
    bias: npt.NDArray[np.float64], update: npt.NDArray[np.float64], rounding: Rounding
) -> npt.NDArray[np.float64]:
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
