"""The range of every activation over calibration images."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.quantization.float_forward import float_activations, normalise
from pmt.quantization.float_graph import FloatGraph

_BATCH = 64

Range = tuple[float, float]


def activation_ranges(
    graph: FloatGraph, images: npt.NDArray[Any], *, percentile: float = 100.0
) -> list[Range]:
    """Measure the lowest and highest value of every activation.

    Parameters
    ----------
    graph : FloatGraph
        The network.
    images : ndarray of uint8, shape (N, H, W, C)
        Calibration images, pixels 0..255.
    percentile : float
        100 takes minimum and maximum over all images. A smaller value, above 50, cuts outliers:
        it takes the percentiles ``100 - percentile`` and ``percentile`` of each batch of 64
        images, averaged over the batches.

    Returns
    -------
    list of (float, float)
        Per tensor of the graph. Zero is always inside: padding and ReLU need it exactly.

    Raises
    ------
    ValueError
        The percentile is out of range, the images do not fit, or an activation is not finite.
    """
    if not 50.0 < percentile <= 100.0:
        raise ValueError(
            f"percentile is {percentile}, but must be above 50 and at most 100: "
            "use 100 for minimum and maximum, 99.9 to cut outliers"
        )
    lows: list[list[float]] = []
    highs: list[list[float]] = []
    inputs = normalise(graph, images)
    for first in range(0, len(inputs), _BATCH):
        activations = float_activations(graph, inputs[first : first + _BATCH])
        _require_finite(graph, activations)
        cuts = [np.percentile(a, (100.0 - percentile, percentile)) for a in activations]
        lows.append([float(low) for low, _ in cuts])
        highs.append([float(high) for _, high in cuts])
    if percentile == 100.0:
        low, high = np.min(lows, axis=0), np.max(highs, axis=0)
    else:
        low, high = np.mean(lows, axis=0), np.mean(highs, axis=0)
    return [(min(float(a), 0.0), max(float(b), 0.0)) for a, b in zip(low, high, strict=True)]


def _require_finite(graph: FloatGraph, activations: list[npt.NDArray[np.float32]]) -> None:
    for tensor, values in zip(graph.tensors, activations, strict=True):
        if not np.all(np.isfinite(values)):
            raise ValueError(
                f"activation {tensor.name!r} is not finite on the calibration images: "
                "check the float weights and input_std"
            )
