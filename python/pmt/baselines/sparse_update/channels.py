"""Which input channels of a layer a sparse update trains, and the masks that say so."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.baselines.backprop.scheme import LayerUpdate, UpdateScheme, input_channels
from pmt.model import Model

__all__ = ["by_input_channel", "chosen_scheme", "largest_channels", "top_channels", "weight_masks"]


def top_channels(scores: npt.ArrayLike, count: int) -> tuple[int, ...]:
    """Return the ``count`` channels of the highest score, ascending; of equals the first."""
    order = np.argsort(-np.asarray(scores, np.float64), kind="stable")
    return tuple(sorted(int(channel) for channel in order[:count]))


def largest_channels(model: Model, op: int, count: int) -> tuple[int, ...]:
    """Return the input channels whose int8 weights have the largest Euclidean norm.

    MCUTrain's rule. A depthwise layer's channels are its own.

    Parameters
    ----------
    model : Model
        The network.
    op : int
        Op index of a layer.
    count : int
        How many.

    Returns
    -------
    tuple of int
        Channels, ascending; of equal norms the first are taken.
    """
    weights = by_input_channel(model, op, model.core.weights(op)).astype(np.int64)
    return top_channels(np.square(weights).sum(axis=(0, 2)), count)


def chosen_scheme(model: Model, scheme: UpdateScheme) -> UpdateScheme:
    """Return the scheme with the channels chosen, by the weights, where they are not."""
    updates = []
    for u in scheme.layers:
        chosen = u.chosen or largest_channels(model, u.op, u.channels)
        updates.append(LayerUpdate(u.op, u.channels, u.bias, chosen))
    return UpdateScheme(tuple(updates))


def weight_masks(model: Model, scheme: UpdateScheme) -> dict[int, npt.NDArray[np.bool_]]:
    """Return which weights of each layer are trained.

    Parameters
    ----------
    model : Model
        The network.
    scheme : UpdateScheme
        Channels that it does not name are chosen by the weights.

    Returns
    -------
    dict
        By op index, in the shape of :meth:`pmt._core.Model.weights`; every layer of the scheme,
        all False where only biases are trained.
    """
    masks = {}
    for update in chosen_scheme(model, scheme).layers:
        mask = np.zeros(model.core.weights(update.op).shape, np.bool_)
        by_input_channel(model, update.op, mask)[:, list(update.chosen)] = True
        masks[update.op] = mask
    return masks


def by_input_channel(model: Model, op: int, weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """View an array in the shape of a layer's weights as (before, input channels, after)."""
    channels = input_channels(model, op)
    if model.core.ops()[op]["kind"] != "depthwise_conv2d":
        return weights.reshape(-1, channels, 1)  # (out, kernel, kernel, in)
    kernel = model.core.ops()[op]["kernel"]  # (kernel, kernel, in, outputs of each)
    return weights.reshape(kernel[0] * kernel[1], channels, -1)
