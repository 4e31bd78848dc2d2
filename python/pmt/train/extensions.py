"""Custom estimators and optimizers: their interface, and their states."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pmt._util.arrays import Array, DoubleArray, Int8Array, Int64Array
from pmt._util.checks import kind_of, refuse_mask
from pmt.train.engine import Engine
from pmt.train.extension_names import name_of
from pmt.train.options import TrainingOptions

__all__ = [
    "BIAS",
    "Estimator",
    "Optimizer",
    "arrays_of",
    "check_extensions",
    "real_array",
    "restore",
    "state_of",
]

# Behind a layer's name: its biases. The name alone stands for its weights.
BIAS = ".bias"


class Estimator(Protocol):
    """Estimates gradients by an engine's losses.

    Where it keeps anything from step to step, ``state()`` returns it as a dict of arrays, and
    ``load_state(state)`` takes it back, after which ``state()`` must return the same: it is in the
    checkpoints, so that a run resumes bit for bit. What is random should be a function of ``step``
    and a seed of its own.
    """

    def __call__(
        self, engine: Engine, images: Int8Array, labels: Int64Array, step: int
    ) -> Mapping[str, Array]:
        """Return the gradient of the mean loss by the stored integers.

        Parameters
        ----------
        engine : Engine
            Holds the weights from before the step. Whatever the estimator sets is undone.
        images : ndarray of int8, shape (batch, height, width, channels)
            The model's input.
        labels : ndarray of int64, shape (batch,)
            Classes.
        step : int
            Number of the step, from 0.

        Returns
        -------
        dict of str to ndarray
            Gradients: under the layer's name (of ``engine.layers``) that of its weights, shaped as
            ``engine.weights(layer)``; under the name and ``.bias`` that of its biases. What is
            left out is not trained in this step.
        """


class Optimizer(Protocol):
    """Turns gradients into integer steps; ``state()`` and ``load_state()`` as an estimator's."""

    def __call__(self, layer: str, gradient: DoubleArray, learning_rate: float) -> Array | None:
        """Return the change of the stored integers; None leaves it to pmt's own update.

        Parameters
        ----------
        layer : str
            A layer's name for its weights, with ``.bias`` for its biases.
        gradient : ndarray of float64
            Gradient of the mean loss by them, in nats a step of the integer.
        learning_rate : float
            The schedule's rate of this step.

        Returns
        -------
        ndarray of int, same shape, or None
            The sum is clipped to -127..127 for weights, to int32 for biases. Dead channels stay.
        """


def check_extensions(
    options: TrainingOptions, estimator: Estimator | None, optimizer: Optimizer | None
) -> None:
    """Raise an error where an estimator or optimizer is none, or an option needs pmt's own."""
    for name, one in (("estimator", estimator), ("optimizer", optimizer)):
        if one is not None:
            _check_one(name, one)
    own = "estimator" if estimator is not None else "optimizer" if optimizer is not None else ""
    wanted: dict[str, tuple[Any, str]] = {}
    if own:
        wanted = {"loss": ("cross_entropy", "is for the built-in estimators and updates")}
    if estimator is not None:
        wanted["gradient_norm_scaling"] = ("none", "counts the built-in estimators' queries")
    elif optimizer is not None:
        wanted["scope"] = ("layer_wise", "perturbs all layers in one query")
    for name, (value, why) in wanted.items():
        if getattr(options, name) != value:
            raise ValueError(
                f"{name}={getattr(options, name)!r} {why}; with an {own} of your own use "
                f"{name}={value!r}"
            )


def _check_one(name: str, extension: object) -> None:
    if isinstance(extension, type):
        raise TypeError(
            f"{name}={name_of(extension)} is a class; give an object: {name_of(extension)}(...)"
        )
    if not callable(extension):
        raise TypeError(
            f"{name}={extension!r} must be callable: a function, or an object with __call__"
        )
    if hasattr(extension, "state") != hasattr(extension, "load_state"):
        there, missing = ("state", "load_state")[:: 1 if hasattr(extension, "state") else -1]
        raise TypeError(
            f"{name}={name_of(extension)} has {there}() without {missing}(); a run needs both to "
            "resume, or neither"
        )


def real_array(what: str, values: npt.ArrayLike) -> Array:
    """Return numbers as an array, or raise a TypeError or ValueError that names their owner.

    A mask and an imaginary part would be lost without a word.
    """
    refuse_mask(what, values)
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{what} must be real numbers; got {array.dtype}")
    return array


def state_of(name: str, extension: object) -> dict[str, Array]:
    """Return copies of an extension's state, by ``name.key``."""
    return arrays_of(name, extension, extension.state()) if hasattr(extension, "state") else {}


def arrays_of(name: str, extension: object, state: object) -> dict[str, Array]:
    """Return copies of an extension's state, by ``name.key``."""
    if not isinstance(state, Mapping):
        raise TypeError(
            f"{name_of(extension)}.state() must return a dict of arrays; got {kind_of(state)}"
        )
    kept = {}
    for key, value in state.items():
        if not isinstance(key, str) or not key.isprintable() or not key or {*key} & {*"/\\"}:
            raise TypeError(
                f"{name_of(extension)}.state() holds {key!r}: a name must be text without slashes"
            )
        kept[f"{name}.{key}"] = _kept_array(f"{name}.{key} of {name_of(extension)}.state()", value)
    return kept


def _kept_array(what: str, value: object) -> Array:
    """Return a copy of an array that a file can hold."""
    found = f"an array of {getattr(value, 'dtype', 'objects')}"
    try:
        array = np.array(value)
    except ValueError:  # rows of different lengths
        array = np.array(None)
    if array.dtype.hasobject:
        found = "an array of objects"
    if np.ma.isMaskedArray(value):
        found = "a masked array"
    if np.ma.isMaskedArray(value) or array.dtype.kind not in "biufcSU":
        raise TypeError(f"{what} must be an array of numbers or text; got {found}")
    return array


def restore(name: str, extension: Any, state: Mapping[str, Array]) -> None:
    """Give an extension a state of :func:`state_of`; a ValueError says that it has another then."""
    extension.load_state({key[len(name) + 1 :]: array for key, array in state.items()})
    taken = state_of(name, extension)
    for key in sorted({*state, *taken}):
        if key not in state or key not in taken or not _equal(state[key], taken[key]):
            raise ValueError(
                f"{name_of(extension)}.load_state(state) must restore what state() returned; "
                f"{key[len(name) + 1 :]!r} differs"
            )


def _equal(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
