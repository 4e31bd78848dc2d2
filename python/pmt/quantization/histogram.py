"""A histogram of an activation that grows with its values, in bounded memory."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
DoubleArray = npt.NDArray[np.float64]

BINS = 16384
_CHUNK = 2**18


class Histogram:
    """Counts of values in at most 16,384 bins of equal width.

    The width is a power of two and zero is an edge, so that wider bins are unions of narrower
    ones: where the values outgrow the bins, these are merged in pairs and no count is spread. The
    result depends on the values alone, not on the batches that they come in. Exact zeros, of which
    ReLU makes many, are counted apart.

    One pass with bins that widen is how PyTorch's ``HistogramObserver`` and the histogram
    calibrators of TensorRT's toolkits collect an activation, too.
    """

    def __init__(self) -> None:
        self.low = math.inf
        self.high = -math.inf
        self.zeros = 0
        self._counts = np.zeros(0, np.int64)
        self._first = 0  # index of the first bin: it holds [first, first + 1) * width
        self._exponent: int | None = None

    @property
    def width(self) -> float:
        """Width of a bin; 0 as long as all values are zero."""
        return 0.0 if self._exponent is None else math.ldexp(1.0, self._exponent)

    @property
    def total(self) -> int:
        """Number of values."""
        return self.zeros + int(self._counts.sum())

    def add(self, values: FloatArray) -> bool:
        """Count values of any shape.

        Returns
        -------
        bool
            False, and nothing is counted, if a value is not finite.
        """
        low, high = float(values.min()), float(values.max())
        if not (math.isfinite(low) and math.isfinite(high)):
            return False
        self.low, self.high = min(self.low, low), max(self.high, high)
        zeros = values.size - int(np.count_nonzero(values))
        self.zeros += zeros
        if low == high == 0.0:
            return True
        self._widen(_exponent(self.low, self.high))
        first = math.floor(low / self.width)
        counts = np.zeros(math.floor(high / self.width) - first + 1, np.int64)
        flat = values.reshape(-1)
        for begin in range(0, len(flat), _CHUNK):
            bins = np.floor(flat[begin : begin + _CHUNK] * np.float64(1.0 / self.width))
            counts += np.bincount(bins.astype(np.int64) - first, minlength=len(counts))
        if zeros:
            counts[-first] -= zeros
        self._merge(first, counts)
        return True

    def bins(self) -> tuple[DoubleArray, DoubleArray]:
        """Return lower edges and counts of the bins that are not empty; zeros are left out."""
        filled = np.flatnonzero(self._counts)
        edges = (self._first + filled).astype(np.float64) * self.width
        return edges, self._counts[filled].astype(np.float64)

    def quantile(self, share: float) -> float:
        """Return the value that ``share`` (0..1) of all values do not exceed.

        Within a bin, values are taken to be spread evenly: the result is off by one bin at most.
        """
        edges, counts = self.bins()
        place = int(np.searchsorted(edges, 0.0))
        lower = np.insert(edges, place, 0.0)
        upper = np.insert(edges + self.width, place, 0.0)
        counts = np.insert(counts, place, float(self.zeros))
        ends = np.cumsum(counts)
        rank = share * ends[-1]
        found = min(int(np.searchsorted(ends, rank)), len(ends) - 1)
        inside = (rank - (ends[found] - counts[found])) / counts[found] if counts[found] else 0.0
        value = lower[found] + inside * (upper[found] - lower[found])
        return float(np.clip(value, self.low, self.high))

    def _widen(self, exponent: int) -> None:
        if self._exponent is None:
            self._exponent = exponent
            return
        for _ in range(exponent - self._exponent):
            odd = self._first % 2
            counts = np.pad(self._counts, (odd, (len(self._counts) + odd) % 2))
            self._counts = counts.reshape(-1, 2).sum(axis=1)
            self._first //= 2
        self._exponent = max(self._exponent, exponent)

    def _merge(self, first: int, counts: npt.NDArray[np.int64]) -> None:
        if len(self._counts) == 0:
            self._first, self._counts = first, counts
            return
        begin = min(first, self._first)
        end = max(first + len(counts), self._first + len(self._counts))
        merged = np.zeros(end - begin, np.int64)
        for start, part in ((first, counts), (self._first, self._counts)):
            merged[start - begin : start - begin + len(part)] += part
        self._first, self._counts = begin, merged


def _exponent(low: float, high: float) -> int:
    """Least exponent of a width with which ``BINS`` bins reach over zero and [low, high]."""
    low, high = min(low, 0.0), max(high, 0.0)
    exponent = math.frexp((high - low) / BINS)[1] - 1
    while _bin_count(low, high, exponent) > BINS:
        exponent += 1
    return exponent


def _bin_count(low: float, high: float, exponent: int) -> int:
    width = math.ldexp(1.0, exponent)
    return math.floor(high / width) - math.floor(low / width) + 1
