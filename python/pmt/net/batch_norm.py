"""Folding a batch norm into the layer before it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating]


def fold_batch_norm(
    weights: FloatArray,
    bias: FloatArray,
    *,
    channel_axis: int,
    gamma: FloatArray,
    beta: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    epsilon: float,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return the weights and bias of one layer that equals layer and batch norm.

    Parameters
    ----------
    weights : ndarray of float
        The layer's weights, output channels along ``channel_axis``.
    bias : ndarray of float, shape (channels,)
        The layer's bias; zeros where it has none.
    channel_axis : int
        0 for ``conv2d`` and ``fully_connected``, 2 for ``depthwise_conv2d``.
    gamma, beta, mean, variance : ndarray of float, shape (channels,)
        Scale, shift and the running statistics, as used at inference.
    epsilon : float
        Added to the variance; at least 0.

    Returns
    -------
    tuple of ndarray of float32
        Folded weights, in the layout of ``weights``, and folded bias.

    Raises
    ------
    ValueError
        A vector has not one entry per output channel, or a variance plus epsilon is not positive.
    """
    channels = weights.shape[channel_axis]
    vectors = {"bias": bias, "gamma": gamma, "beta": beta, "mean": mean, "variance": variance}
    for name, vector in vectors.items():
        if vector.shape != (channels,):
            raise ValueError(
                f"{name} has shape {vector.shape}, but the layer has {channels} output channels "
                f"on axis {channel_axis}: pass an array of shape ({channels},)"
            )
    spread = variance.astype(np.float64) + epsilon
    if not np.all(spread > 0):
        raise ValueError(
            f"variance + epsilon has the minimum {spread.min()}, which must be positive: pass the "
            "running variance (not its inverse or logarithm) and an epsilon of at least 0"
        )
    factor = gamma.astype(np.float64) / np.sqrt(spread)
    shape = [1] * weights.ndim
    shape[channel_axis] = channels
    folded_weights = weights.astype(np.float64) * factor.reshape(shape)
    folded_bias = (bias.astype(np.float64) - mean) * factor + beta
    return folded_weights.astype(np.float32), folded_bias.astype(np.float32)
