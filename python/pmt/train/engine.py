"""The public engine: losses of many perturbations of a layer, for custom estimators."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from pmt import _core
from pmt._util.arrays import Array, DoubleArray, FloatArray, Int8Array, Int32Array
from pmt._util.checks import checked_array, checked_flag, checked_range, refuse_mask
from pmt._util.processes import thread_count
from pmt.model import Model
from pmt.model.input_conversion import check_floats
from pmt.model.layers import check_symmetric
from pmt.model.model import check_model


class Engine:
    """Runs a model with one layer perturbed in many ways at once, as fast as the trainer does.

    The part before the layer runs once per image, the rest of the network once per query. The
    model's own weights are not touched, so that queries need not be undone.

    Parameters
    ----------
    model : Model
        The model; its weights are the engine's.
    layers : str, int or iterable of these
        Layers that may be perturbed and changed, as in :meth:`pmt.Model.select_layers`.
    int8_logits : bool
        Take the losses of the int8 output, not of the last layer's accumulators.
    seed : int
        Seed of :meth:`random`; in a run that of its options.
    threads : int
        Threads to use; 0 takes all, but one in a worker of a process pool. No result depends on it.

    Attributes
    ----------
    model : Model
        The model.
    layers : list of str
        Names of the layers, in the order of the network.
    forwards, macs : int
        Perturbed forwards, and multiply-accumulates of all passes, so far.

    Raises
    ------
    TypeError
        If an argument has another type.
    ValueError
        If a name is unknown, or `seed` or `threads` is below 0.

    Examples
    --------
    >>> import numpy as np
    >>> import pmt
    >>> model, data = pmt.load("fashion_mnist_dscnn"), pmt.datasets.bundled("train")
    >>> engine = pmt.Engine(model, layers="head")
    >>> layer = engine.layers[0]
    >>> signs = engine.random(layer, 0).choice([-1, 1], (20, *engine.weights(layer).shape))
    >>> images, labels = data.images[:5], data.labels[:5]
    >>> engine.losses(images, labels, layer, signs.astype(np.int8)).shape
    (20, 5)
    """

    def __init__(
        self,
        model: Model,
        layers: str | int | Iterable[str | int] = "all",
        *,
        int8_logits: bool = False,
        seed: int = 1,
        threads: int = 0,
    ) -> None:
        check_model(model)
        self.model = model
        self.seed = checked_range("seed", seed, 0)
        chosen = model.select_layers(layers)
        self._ops = {layer.name: layer.index for layer in model.layers if layer.index in chosen}
        self._nodes = {layer.name: layer.output_shape for layer in model.layers}
        self._macs = [int(op["macs"]) for op in model.core.ops()]
        self.layers = list(self._ops)
        self.int8_logits = checked_flag("int8_logits", int8_logits)
        self.threads = thread_count(threads)
        self.forwards = 0
        self.macs = 0

    def weights(self, layer: str) -> Int8Array:
        """Return a copy of a layer's weights.

        Parameters
        ----------
        layer : str
            Name of a layer, one of ``layers``.

        Returns
        -------
        ndarray of int8
            Shape (out, height, width, in) of a convolution, (height, width, out) of a depthwise
            one, (out, in) of a fully connected layer.

        Raises
        ------
        ValueError
            If the engine does not have the layer.
        """
        return self.model.core.weights(self._op(layer))

    def set_weights(self, layer: str, weights: Int8Array) -> None:
        """Replace a layer's weights.

        Parameters
        ----------
        layer : str
            Name of a layer, one of ``layers``.
        weights : ndarray of int8
            As in :meth:`weights`.

        Raises
        ------
        ValueError
            If the engine does not have the layer, the shape is wrong, or a new weight is -128.
        TypeError
            If the dtype is not int8, or the array is masked.
        """
        op = self._op(layer)
        old = self.model.core.weights(op)
        new = _array("weights", weights, np.int8, layer, [old.shape])
        check_symmetric(new, old, layer)
        self.model.core.set_parameters(op, new, self.model.core.bias(op))

    def bias(self, layer: str) -> Int32Array:
        """Return a copy of a layer's biases, shape (channels,); errors as in :meth:`weights`."""
        return self.model.core.bias(self._op(layer))

    def set_bias(self, layer: str, bias: Int32Array) -> None:
        """Replace a layer's biases; errors as in :meth:`set_weights`."""
        op = self._op(layer)
        new = _array("bias", bias, np.int32, layer, [self.model.core.bias(op).shape])
        self.model.core.set_parameters(op, self.model.core.weights(op), new)

    def random(self, layer: str, step: int) -> np.random.Generator:
        """Return the random numbers of a layer in a step, a function of the two and the seed.

        An estimator that draws from it resumes bit for bit without a state of its own.

        Parameters
        ----------
        layer : str
            Name of a layer, one of ``layers``.
        step : int
            Number of the step, 0 or more.

        Returns
        -------
        numpy.random.Generator
            Made anew by every call.

        Raises
        ------
        ValueError
            If the engine does not have the layer.
        """
        step = checked_range("step", step, 0, 2**63 - 1)
        return np.random.default_rng([self.seed, self._op(layer), step])

    def losses(
        self,
        images: Array,
        labels: Array,
        layer: str | None = None,
        weights: Int8Array | None = None,
        *,
        bias: Int32Array | None = None,
        nodes: Int8Array | None = None,
    ) -> DoubleArray:
        """Return the losses of images, for each perturbation of a layer.

        Parameters
        ----------
        images : ndarray of uint8, float32 or int8, shape (samples, height, width, channels)
            Pixels or other inputs, as :meth:`pmt.Model.prepare` takes them, or what it returns.
        labels : ndarray of int, shape (samples,)
            Classes.
        layer : str, optional
            Name of the layer that is perturbed; without it the model runs as it is.
        weights : ndarray of int8, shape ``(queries, [samples,] *weights)``
            Added to the layer's weights, the sum clipped to -127..127: the same for all images, or
            for each its own.
        bias : ndarray of int32, shape (queries, channels) or (queries, samples, channels)
            Added to its biases, alone or together with ``weights``.
        nodes : ndarray of int8, shape ``(queries, samples, channels)`` or ``(..., *output)``
            Added to its output, clipped as the layer clips it: one value for a channel's whole
            plane, or one for each node. ``samples`` may be 1: the same for all images.

        Returns
        -------
        ndarray of float64, shape (queries, samples); (samples,) without a layer
            Softmax cross-entropy in nats, multiples of 2^-20.

        Raises
        ------
        ValueError
            If the engine does not have the layer, a shape does not fit, a label is not a class, or
            the model gives features.
        TypeError
            If a dtype is wrong.

        Warns
        -----
        UserWarning
            If float images do not fit the range of the model's input, or look like pixels.
        """
        if not self.model.is_classifier:
            raise ValueError(
                f"the model gives {self.model.output_text}, which have no cross-entropy; "
                "engine.logits returns them for a score of your own"
            )
        logits = self._logits(images, layer, weights, bias, nodes)
        check_floats(self.model.core, images, "images")
        given = checked_array("labels", labels)
        if given.shape != (len(images),) or given.dtype.kind not in "iu":
            raise ValueError(
                f"labels must be integers of shape ({len(images)},), one for each image; got "
                f"{given.dtype} of shape {given.shape}"
            )
        repeated = np.broadcast_to(given.astype(np.int64), logits.shape[:-1])
        losses, _ = _core.cross_entropy(
            logits.reshape(-1, self.model.classes), np.ascontiguousarray(repeated.reshape(-1))
        )
        return losses.reshape(logits.shape[:-1]) / float(_core.LOSS_ONE)

    def logits(
        self,
        images: Array,
        layer: str | None = None,
        weights: Int8Array | None = None,
        *,
        bias: Int32Array | None = None,
        nodes: Int8Array | None = None,
    ) -> FloatArray:
        """Return the logits of images, for each perturbation: for a score of your own.

        Parameters, errors and warnings as in :meth:`losses`.

        Returns
        -------
        ndarray of float32, shape (queries, samples, classes); (samples, classes) without a layer
            Logits; of a model of features its output, in the order height, width, channels.
        """
        logits = self._logits(images, layer, weights, bias, nodes)
        check_floats(self.model.core, images, "images")
        return logits

    def _logits(
        self,
        images: Array,
        layer: str | None,
        weights: Int8Array | None,
        bias: Int32Array | None,
        nodes: Int8Array | None,
    ) -> FloatArray:
        prepared = self.model.prepare(images)
        core, samples = self.model.core, len(images)
        if layer is None:
            if not (weights is None and bias is None and nodes is None):
                raise ValueError("layer is missing: name the layer that is perturbed")
            self.macs += samples * sum(self._macs)
            return core.logits(prepared, self.threads, self.int8_logits)
        if (weights is None and bias is None) == (nodes is None):
            raise ValueError(
                f"layer={layer!r}: give weights or bias (or both), or nodes alone, as perturbations"
            )
        op = self._op(layer)
        shapes = core.weights(op).shape, core.bias(op).shape
        logits = _core.perturbed_logits(
            core,
            np.ascontiguousarray(prepared),
            op,
            _queries("weights", weights, np.int8, layer, shapes[0], samples),
            _queries("bias", bias, np.int32, layer, shapes[1], samples),
            self._node_queries(nodes, layer, samples),
            self.threads,
            self.int8_logits,
        )
        self.forwards += len(logits) * samples
        self.macs += samples * (sum(self._macs[:op]) + len(logits) * sum(self._macs[op:]))
        return logits

    def __repr__(self) -> str:
        return (
            f"<pmt.Engine {self.model.name}: {', '.join(self.layers)}; "
            f"{self.forwards:,} perturbed forwards>"
        )

    def _op(self, layer: str) -> int:
        if not isinstance(layer, str) or layer not in self._ops:
            raise ValueError(
                f"layer={layer!r} is none of the engine's layers: {', '.join(self.layers)}"
            )
        return self._ops[layer]

    def _node_queries(self, nodes: Int8Array | None, layer: str, samples: int) -> Int8Array | None:
        if nodes is None:
            return None
        output = self._nodes[layer]
        queries = _shape(nodes)[:1]
        allowed = [
            (*queries, count, *shape) for count in (samples, 1) for shape in (output[2:], output)
        ]
        checked = _array("nodes", nodes, np.int8, layer, allowed)
        return checked.reshape(*checked.shape[:2], math.prod(checked.shape[2:]))


def _queries(
    name: str, values: Array | None, dtype: Any, layer: str, shape: tuple[int, ...], samples: int
) -> Array | None:
    """Return values of queries as (queries, samples or 1, elements)."""
    if values is None:
        return None
    count = _shape(values)[:1]
    checked = _array(name, values, dtype, layer, [(*count, *shape), (*count, samples, *shape)])
    rows = 1 if checked.ndim == len(shape) + 1 else samples
    return checked.reshape(*count, rows, math.prod(shape))


def _shape(values: object) -> tuple[int, ...]:
    """Return an array's shape, or (1,) where it has none."""
    return getattr(values, "shape", ()) or (1,)


def _array(
    name: str, values: Array, dtype: Any, layer: str, shapes: list[tuple[int, ...]]
) -> Array:
    """Return a contiguous array, or raise an error that names the rule."""
    wanted = np.dtype(dtype)
    refuse_mask(f"{name} of layer {layer!r}", values)
    if not isinstance(values, np.ndarray) or values.dtype != wanted:
        got = getattr(values, "dtype", type(values).__name__)
        raise TypeError(
            f"{name} of layer {layer!r} must be a NumPy array of {wanted}; got {got}; convert it "
            f"by numpy.asarray({name}, numpy.{wanted})"
        )
    if values.shape not in shapes:
        allowed = " or ".join(map(str, dict.fromkeys(shapes)))
        raise ValueError(f"{name} of layer {layer!r} must have shape {allowed}; got {values.shape}")
    return np.ascontiguousarray(values)
