"""The range that quantises a histogram with the least squared error."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pmt.quantization.affine import Range, scale_and_zero_point
from pmt.quantization.histogram import Histogram

DoubleArray = npt.NDArray[np.float64]

# Fractions of the whole range that an end may keep. Below 1/16, an int8 step is as narrow as two
# bins of the histogram, which then no longer shows the error of rounding.
_COARSE = np.arange(8, 129, 2) / 128
_FINE = np.arange(-3, 4) / 512
_SWEEPS = 4


def least_error_range(histogram: Histogram) -> Range:
    """Search the range whose int8 rounding and clipping make the least mean square error.

    Clipping outliers costs a large error for few values; not clipping them, a wide step for all.
    As in PyTorch's ``HistogramObserver`` the search is over the ends of the range, on the
    histogram. Here each end in turn is searched on a grid, with the other one held, until neither
    moves, and then on a finer grid; the error is that of the very scale and zero point that the
    range gives.

    Parameters
    ----------
    histogram : Histogram
        Of at least one value.

    Returns
    -------
    (float, float)
        Within minimum and maximum of the values, and zero inside.
    """
    low, high = min(histogram.low, 0.0), max(histogram.high, 0.0)
    if low == high:
        return low, high
    edges, counts = histogram.bins()
    centres = edges + histogram.width / 2

    def error(fractions: tuple[float, float]) -> float:
        return _squared_error(centres, counts, (low * fractions[0], high * fractions[1]))

    best = (1.0, 1.0)
    for grid in (lambda _: _COARSE, lambda middle: np.clip(middle + _FINE, _COARSE[0], 1.0)):
        best = _descend(error, best, grid, moves=(low < 0.0, high > 0.0))
    return low * best[0], high * best[1]


def _descend(
    error: Callable[[tuple[float, float]], float],
    best: tuple[float, float],
    grid: Callable[[float], DoubleArray],
    *,
    moves: tuple[bool, bool],
) -> tuple[float, float]:
    """Lower the error by one end after the other, until none of them moves."""
    least = error(best)
    for _ in range(_SWEEPS):
        before = best
        for end in (0, 1):
            for fraction in grid(best[end]) if moves[end] else ():
                candidate = (float(fraction), best[1]) if end == 0 else (best[0], float(fraction))
                found = error(candidate)
                if found < least:
                    least, best = found, candidate
        if best == before:
            break
    return best


def _squared_error(values: DoubleArray, counts: DoubleArray, bounds: Range) -> float:
    scale, zero_point = scale_and_zero_point(*bounds)
    steps = np.clip(np.rint(values / scale), -128 - zero_point, 127 - zero_point)
    return float(counts @ (values - steps * scale) ** 2)
