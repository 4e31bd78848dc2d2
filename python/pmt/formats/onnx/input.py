"""From pixels to the first activation of an ONNX network, and the blocks of its layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pmt.formats.layer_blocks import consecutive_blocks
from pmt.formats.onnx.draft import Draft
from pmt.net.float_graph import LAYER_KINDS

__all__ = ["input_formula", "layer_blocks", "per_channel"]

Numbers = float | Sequence[float] | None


def per_channel(
    name: str, values: Numbers, channels: int, default: float
) -> npt.NDArray[np.float64]:
    """Return an option as one number a channel.

    Raises
    ------
    ValueError
        If there are more or fewer, one is not finite, or a spread is zero.
    """
    array = np.asarray(default if values is None else values, np.float64)
    if array.ndim == 0:
        array = np.full(channels, float(array))
    if array.shape != (channels,) or not np.all(np.isfinite(array)):
        raise ValueError(
            f"{name}={array.tolist()}: needs one finite number, or one for each of the {channels} "
            "input channels, in units of a 0..255 pixel"
        )
    if name == "input_std" and not np.all(array != 0):
        raise ValueError(f"input_std={array.tolist()}: must not be zero")
    return array


def input_formula(
    draft: Draft, mean: npt.NDArray[np.float64], std: npt.NDArray[np.float64]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Join ``(pixel - mean) / std`` with the scaling that the network itself begins with.

    Returns
    -------
    tuple of two tuples of float
        The mean and spread with which pixels become the first activation.
    """
    joined_std = std / draft.factor
    joined_mean = mean - draft.offset * joined_std
    return tuple(map(float, joined_mean)), tuple(map(float, joined_std))


def layer_blocks(draft: Draft) -> dict[str, list[int]]:
    """Return ``B1`` to ``B4`` (the layers before the head), ``head`` and ``all``."""
    layers = [i for i, op in enumerate(draft.ops) if op.kind in LAYER_KINDS and not op.fixed]
    return consecutive_blocks(layers[:-1]) | {"head": layers[-1:], "all": layers}
