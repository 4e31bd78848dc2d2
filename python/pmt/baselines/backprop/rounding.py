"""How an update reaches weights that are whole numbers. NumPy only."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.baselines.backprop.options import Rounding

__all__ = ["random_bits", "updated_bias", "updated_weights"]

_LARGEST_UPDATE = 16384.0  # as in the core: Q15.16 stays inside int32
_LARGEST_WEIGHT = 127
_INT32 = np.iinfo(np.int32)

FloatArray = npt.NDArray[np.float32]


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
    """Subtract an update from weights in weight steps, and clip to -127..127.

    Parameters
    ----------
    weights : ndarray of float32
        Whole numbers, except with ``"shadow"``.
    update : ndarray of float32, same shape
        In weight steps. Where it is not a number nothing changes.
    rounding : {"stochastic", "nearest", "truncation", "shadow"}
        See :class:`pmt.backprop.BackpropOptions`.
    bits : ndarray of int32, as many as weights
        Random numbers 0..65535 of stochastic rounding: the update becomes
        ``floor(update + bits / 65536)``, whose mean is the update.

    Returns
    -------
    ndarray of float32
        Whole numbers, except with ``"shadow"``.
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
    return np.clip(result, -_LARGEST_WEIGHT, _LARGEST_WEIGHT).astype(np.float32)


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


def _bounded(update: npt.NDArray[Any], most: float) -> npt.NDArray[Any]:
    return np.asarray(np.nan_to_num(np.clip(update, -most, most), nan=0.0))
