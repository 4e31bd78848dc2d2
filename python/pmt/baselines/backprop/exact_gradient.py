"""The gradient that zeroth-order estimators estimate, by back-propagation."""

from dataclasses import dataclass

import numpy as np

from pmt._util.arrays import FloatArray, Int8Array, Int64Array
from pmt._util.checks import check_type, checked_array, checked_range
from pmt.model import Model
from pmt.model.model import check_model


@dataclass(frozen=True)
class ExactGradient:
    """Gradient of one layer's parameters: nats for one weight step, nats for one bias step.

    Attributes
    ----------
    weights : ndarray of float32, shape (weights,)
        Derivatives by the weights, mean over the samples, in the order of
        :meth:`pmt._core.Model.weights`.
    bias : ndarray of float32, shape (channels,)
        Derivatives by the biases, mean over the samples.
    sample_weights : ndarray of float32, shape (N, weights)
        Derivatives by the weights, of each sample's own loss.
    sample_bias : ndarray of float32, shape (N, channels)
        Derivatives by the biases, of each sample's own loss.
    losses : ndarray of float32, shape (N,)
        Cross-entropy of each sample, in nats.
    """

    weights: FloatArray
    bias: FloatArray
    sample_weights: FloatArray
    sample_bias: FloatArray
    losses: FloatArray


def exact_gradient(
    model: Model, images: Int8Array, labels: Int64Array, layer: str | int, *, chunk: int = 50
) -> ExactGradient:
    """Differentiate the loss by one layer's parameters, for every sample.

    Estimates of :meth:`pmt._core.Trainer.estimate` are compared with it: it is in the same units
    (one step of a weight or bias), in the same order, before any scaling (QAS, GNS).

    "Exact" means free of sampling: the straight-through gradient of the int8 network. Rounding
    counts as the identity; a clamp counts as it is, with values on a bound let through (as in
    MCUTrain; the core's node perturbation drops those). The int8 loss itself is a staircase in the
    weights, whose derivative is zero almost everywhere, so this is a choice, the one that
    quantization-aware training makes. A zeroth-order estimate with a finite ``mu`` has the
    *smoothed* loss's gradient as its expectation: the two agree well, but not perfectly, however
    many queries are spent. Where they differ, the cosine's limit below 1 is the estimator's bias,
    not its variance.

    Parameters
    ----------
    model : Model
        The network; it is not changed.
    images : ndarray of int8, shape (N, height, width, channels)
        Prepared images, see :meth:`pmt.Model.prepare`.
    labels : ndarray of int64, shape (N,)
        Their classes.
    layer : str or int
        Name or op index of the layer.
    chunk : int
        Samples at once: a chunk's memory is its activations from the layer on, and its samples'
        gradients. The result does not depend on it beyond the last bits of float32.

    Returns
    -------
    ExactGradient
        Means and per-sample gradients.

    Raises
    ------
    ImportError
        If torch is missing.
    ValueError
        If ``layer`` names none or several layers, there are no images, or ``chunk`` is below 1.
    """
    check_model(model)
    chosen = model.select_layers(layer)
    if len(chosen) != 1:
        raise ValueError(f"layer={layer!r} are {len(chosen)} layers; name one of them")
    check_type("images", images, np.ndarray, "an int8 array, as model.prepare(images) returns")
    labels = checked_array("labels", labels)
    if images.shape[1:] != model.input_shape or labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ValueError(
            f"images has shape {images.shape} and labels {labels.shape}: must be (N, "
            f"{', '.join(map(str, model.input_shape))}) and (N,), of integers"
        )
    if len(images) == 0 or len(images) != len(labels):
        raise ValueError(
            f"{len(images)} images and {len(labels)} labels: there must be as many, at least one"
        )
    chunk = checked_range("chunk", chunk, 1)
    from pmt.baselines.backprop.networks import IntegerNetwork

    network = IntegerNetwork(model).requires_grad_(False)
    parts = [
        network.sample_gradients(
            images[first : first + chunk], labels[first : first + chunk], chosen
        )
        for first in range(0, len(images), chunk)
    ]
    weights, bias = (
        np.concatenate([gradients[chosen[0]][i] for gradients, _ in parts]) for i in range(2)
    )
    return ExactGradient(
        weights=weights.mean(axis=0, dtype=np.float64).astype(np.float32),
        bias=bias.mean(axis=0, dtype=np.float64).astype(np.float32),
        sample_weights=weights,
        sample_bias=bias,
        losses=np.concatenate([losses for _, losses in parts]),
    )
