"""Steps with an estimator or an optimizer of the user's own, on pmt's engine."""

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt._core import DEAD_CHANNEL_SCALE, LARGEST_WEIGHT
from pmt._util.arrays import Array, BoolArray, DoubleArray, Int8Array, Int32Array, Int64Array
from pmt._util.checks import kind_of
from pmt.train.costs.work import zeroth_order_work
from pmt.train.engine import Engine
from pmt.train.extensions import (
    BIAS,
    Estimator,
    Optimizer,
    arrays_of,
    real_array,
    restore,
    state_of,
)
from pmt.train.options import TrainingOptions
from pmt.train.stepper import Stepper, batch_figures

_Gradients = dict[str, DoubleArray]
_INT32 = np.iinfo(np.int32)
_LARGEST_UPDATE = 1 << 33
# Fixed-point scale of a gradient that is passed to the built-in update, and its limit.
_SETS = 1 << 20
_LARGEST_SUM = 2.0**62


class ExtendedStepper(Stepper):
    """Asks for gradients, then for updates; either may be pmt's own.

    Estimator and optimizer are copied: each run begins with them as they were given.
    """

    def __init__(
        self,
        engine: Engine,
        options: TrainingOptions,
        estimator: Estimator | None,
        optimizer: Optimizer | None,
    ) -> None:
        self.engine = engine
        self.options = options
        self.estimator: Any = copy.deepcopy(estimator)
        if estimator is None:
            self.estimator = _CoreEstimator(engine, options)
        self.optimizer: Any = copy.deepcopy(optimizer)
        self._update = CoreUpdate(engine, options)
        self._state = self._kept()
        self._first_optimizer_state = state_of("optimizer", self.optimizer)
        for name, one in self._with_state():  # not at the end of a run that cannot be resumed
            restore(name, copy.deepcopy(one), state_of(name, one))

    def step(
        self, images: Int8Array, labels: Int64Array, step: int, learning_rate: float
    ) -> dict[str, Any]:
        """Take one step, see :meth:`pmt.train.stepper.Stepper.step`."""
        forwards, macs = self.engine.forwards, self.engine.macs
        losses, correct = _core.cross_entropy(self.engine.logits(images), labels)
        gradients = self._gradients(images, labels, step)
        layers = [n for n in self.engine.layers if n in gradients or n + BIAS in gradients]
        new = {layer: self._new(layer, gradients, step, learning_rate) for layer in layers}
        state = self._kept()
        self.steps_taken += 1
        changed = 0
        for layer, (weights, bias) in new.items():
            changed += int((weights != self.engine.weights(layer)).sum())
            self.engine.set_weights(layer, weights)
            self.engine.set_bias(layer, bias)
        self._state = state
        return {
            **batch_figures(losses, correct),
            "changed": changed,
            "forwards": self.engine.forwards - forwards,
            "macs": self.engine.macs - macs,
        }

    def state(self) -> dict[str, Array]:
        """Return the state of estimator and optimizer after the last whole step."""
        return self._state

    def load_state(self, state: Mapping[str, Array]) -> None:
        """Restore a state of :meth:`state`."""
        rest = dict(state)
        for name, one in self._with_state():
            own = {key: rest.pop(key) for key in state if key.startswith(f"{name}.")}
            restore(name, one, own)
        if rest:
            raise ValueError(f"state of what takes none: {', '.join(rest)}")
        self._state = self._kept()

    def go_on_from(self, earlier: Any, *, momentum: bool = True) -> None:
        """Go on with the user's own objects themselves: some keep more than their state."""
        if not isinstance(self.estimator, _CoreEstimator):
            self.estimator = earlier.estimator
        if momentum:
            self.optimizer = earlier.optimizer
            self._state = earlier.state()
        else:
            self.load_state(earlier.state_without_momentum())

    def _with_state(self) -> list[tuple[str, Any]]:
        both = (("estimator", self.estimator), ("optimizer", self.optimizer))
        return [(name, one) for name, one in both if hasattr(one, "load_state")]

    def state_without_momentum(self) -> dict[str, Array]:
        """Return the estimator's state, and the optimizer's as it was given.

        Either says otherwise by a method of this name: it knows what of its state is momentum.
        """
        state = {**state_of("estimator", self.estimator), **self._first_optimizer_state}
        for name, one in (("estimator", self.estimator), ("optimizer", self.optimizer)):
            if hasattr(one, "state_without_momentum"):
                state = {k: v for k, v in state.items() if not k.startswith(f"{name}.")}
                state |= arrays_of(name, one, one.state_without_momentum())
        return state

    def _kept(self) -> dict[str, Array]:
        return {**state_of("estimator", self.estimator), **state_of("optimizer", self.optimizer)}

    def _gradients(self, images: Int8Array, labels: Int64Array, step: int) -> _Gradients:
        """Ask the estimator, and take back whatever weights it has set."""
        engine = self.engine
        before = {layer: (engine.weights(layer), engine.bias(layer)) for layer in engine.layers}
        try:
            found = self.estimator(engine, images, labels, step)
        finally:
            for layer, (weights, bias) in before.items():
                _put_back(engine, layer, weights, bias)
        if not isinstance(found, Mapping):
            raise ValueError(
                f"the estimator must return a dict of gradients by layer; got {kind_of(found)}"
            )
        shapes = {layer: weights.shape for layer, (weights, _) in before.items()}
        shapes |= {layer + BIAS: bias.shape for layer, (_, bias) in before.items()}
        checked = {name: _checked_gradient(name, one, shapes) for name, one in found.items()}
        trains = self.options.train_weights, self.options.train_bias
        return {name: one for name, one in checked.items() if trains[name.endswith(BIAS)]}

    def _new(
        self, layer: str, gradients: _Gradients, step: int, learning_rate: float
    ) -> tuple[Int8Array, Int32Array]:
        """Return a layer's weights and biases after the step."""
        weights, bias = self.engine.weights(layer), self.engine.bias(layer)
        own: dict[str, Int64Array] = {}  # updates by the user's optimizer
        for name, before in ((layer, weights), (layer + BIAS, bias)):
            if self.optimizer is not None and name in gradients:
                update = self.optimizer(name, gradients[name], learning_rate)
                if update is not None:
                    own[name] = _checked_update(name, update, before) * self._alive(layer, before)
        new = weights, bias
        if gradients.keys() & {layer, layer + BIAS} != own.keys():
            given = gradients.get(layer), gradients.get(layer + BIAS)
            new = self._update(layer, *given, step, learning_rate)
        if layer in own:
            moved = np.clip(weights + own[layer], -LARGEST_WEIGHT, LARGEST_WEIGHT)
            new = (moved.astype(np.int8), new[1])
        if layer + BIAS in own:
            moved = np.clip(bias + own[layer + BIAS], _INT32.min, _INT32.max)
            new = (new[0], moved.astype(np.int32))
        return new

    def _alive(self, layer: str, parameters: Array) -> BoolArray:
        """Return which channels reach the output, in a shape that multiplies the parameters."""
        op = self.engine.model.select_layers(layer)[0]
        alive = self.engine.model.core.weight_scales(op) >= DEAD_CHANNEL_SCALE
        first = parameters.ndim != 3  # of a depthwise layer channels are the last axis
        return alive.reshape(-1, *(1,) * (parameters.ndim - 1)) if first else alive


def _put_back(engine: Engine, layer: str, weights: Int8Array, bias: Int32Array) -> None:
    is_same = np.array_equal(engine.weights(layer), weights)
    if not (is_same and np.array_equal(engine.bias(layer), bias)):
        op = engine.model.select_layers(layer)[0]
        engine.model.core.set_parameters(op, weights, bias)


def _checked_gradient(
    name: str, gradient: npt.ArrayLike, shapes: Mapping[str, tuple[int, ...]]
) -> DoubleArray:
    if name not in shapes:
        raise ValueError(
            f"the estimator returned a gradient of {name!r}, which is none of engine.layers "
            f"({', '.join(n for n in shapes if not n.endswith(BIAS))}) nor their biases "
            f"(NAME{BIAS})"
        )
    values = real_array(f"the estimator's gradient of {name!r}", gradient).astype(np.float64)
    if values.shape != shapes[name]:
        raise ValueError(
            f"the estimator's gradient of {name!r} must have shape {shapes[name]}; got "
            f"{values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError(f"the estimator's gradient of {name!r} holds NaN or infinity")
    return values


def _checked_update(name: str, update: npt.ArrayLike, parameters: Array) -> Int64Array:
    values = real_array(f"the optimizer's update of {name!r}", update)
    if values.shape != parameters.shape or values.dtype.kind not in "iu":
        raise ValueError(
            f"the optimizer's update of {name!r} must be integers of shape {parameters.shape}; got "
            f"{values.dtype} of shape {values.shape}; round it, and convert by .astype(int)"
        )
    # Any change of an int8 or int32 number, in a sum that fits int64.
    low, high = (int(end) for end in (np.iinfo(values.dtype).min, np.iinfo(values.dtype).max))
    low, high = max(low, -_LARGEST_UPDATE), min(high, _LARGEST_UPDATE)
    return np.asarray(np.clip(values, low, high), np.int64)


class _CoreEstimator:
    """The core's gradients, of the options' estimators; each layer is queried by itself."""

    def __init__(self, engine: Engine, options: TrainingOptions) -> None:
        self.options = options
        core, model = options.to_core(), engine.model
        ops = {layer: model.select_layers(layer)[0] for layer in engine.layers}
        self.trainers = {
            layer: _core.Trainer(model.core, core, [op], options.batch, engine.threads)
            for layer, op in ops.items()
        }
        work = [zeroth_order_work(model.core, core, [op]) for op in ops.values()]
        self.forwards = sum(one.forwards for one in work)
        self.macs = sum(one.macs for one in work)

    def __call__(
        self, engine: Engine, images: Int8Array, labels: Int64Array, step: int
    ) -> Mapping[str, Array]:
        gradients = {}
        for layer, trainer in self.trainers.items():
            weights, bias = trainer.estimate(images, labels, step, 0)
            if self.options.train_weights:
                gradients[layer] = weights.reshape(engine.weights(layer).shape)
            if self.options.train_bias:
                gradients[layer + BIAS] = bias
        engine.forwards += len(images) * self.forwards
        engine.macs += len(images) * self.macs
        return gradients


class CoreUpdate:
    """The core's update of a gradient that it did not estimate.

    It takes sums of whole numbers: those of a one-sided query by one step in each of many sets.
    """

    def __init__(self, engine: Engine, options: TrainingOptions) -> None:
        self.engine = engine
        self.model = engine.model
        plain = options.replace(
            rule="weight",
            queries=1,
            baseline="clean",
            pairs="one_sided",
            mu_weight=1,
            mu_bias=0,
            separate_biases=False,
            gradient_norm_scaling="none",
        )
        self.options = plain.to_core()

    def __call__(
        self,
        layer: str,
        by_weights: DoubleArray | None,
        by_bias: DoubleArray | None,
        step: int,
        learning_rate: float,
    ) -> tuple[Int8Array, Int32Array]:
        """Return a layer's weights and biases after a step by such gradients, None for none."""
        op = self.model.select_layers(layer)[0]
        weights, bias = self.engine.weights(layer), self.engine.bias(layer)
        moves = _core.bias_steps(self.model.core, op, 1)
        sums = (_sums(by_weights, weights), _sums(by_bias, bias, moves), 1, _SETS)
        return _core.updated(
            self.model.core, self.options, op, step, learning_rate, sums, weights, bias
        )


def _sums(
    gradient: DoubleArray | None, parameters: Array, moves: Int32Array | int = 1
) -> Int64Array:
    if gradient is None:
        return np.zeros(parameters.size, np.int64)
    unit = float(_core.LOSS_ONE) * _SETS
    bounded = np.clip(gradient, -_LARGEST_SUM / unit, _LARGEST_SUM / unit)
    scaled = np.clip(np.rint(bounded * unit * moves), -_LARGEST_SUM, _LARGEST_SUM)
    return scaled.astype(np.int64).reshape(-1)
