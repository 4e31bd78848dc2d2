"""Rows (or columns) of a pooling's output, grouped by how the input's edge cuts their windows."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Band", "bands"]


@dataclass(frozen=True)
class Band:
    """``count`` neighbouring outputs with windows of ``kernel`` inputs, in ``start:stop``."""

    count: int
    kernel: int
    start: int
    stop: int


def bands(size: int, outputs: int, kernel: int, stride: int, padding: int) -> list[Band]:
    """Group outputs along one axis.

    Parameters
    ----------
    size, outputs : int
        Inputs and outputs along the axis.
    kernel, stride, padding : int
        Of the pooling; ``padding`` is the one before the first input.

    Returns
    -------
    list of Band
        In order. Whole windows are one band, each cut window is a band of its own.
    """
    found: list[Band] = []
    for i in range(outputs):
        first = i * stride - padding
        start, stop = max(first, 0), min(first + kernel, size)
        whole = stop - start == kernel
        if whole and found and found[-1].kernel == kernel:
            found[-1] = Band(found[-1].count + 1, kernel, found[-1].start, stop)
        else:
            found.append(Band(1, stop - start, start, stop))
    return found
