"""Checks of arguments that several functions share."""

from __future__ import annotations

import operator

import numpy as np
import numpy.typing as npt


def checked_integer(argument: str, value: object) -> int:
    """Return `value` as an int, or raise a TypeError that names `argument`."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{argument} = {value!r}: must be an integer") from None


def checked_seed(seed: object) -> int:
    """Return `seed` as an int of at least 0, or raise a TypeError or ValueError."""
    checked = checked_integer("seed", seed)
    if checked < 0:
        raise ValueError(f"seed = {checked}: a seed is 0 or more")
    return checked


def checked_indices(indices: npt.ArrayLike, count: int) -> npt.NDArray[np.integer]:
    """Return `indices` of a data set of `count` images as an array of shape (M,), M at least 1.

    Raises
    ------
    TypeError
        They are not integers (a Boolean mask, for instance).
    ValueError
        One is out of range, the shape is wrong, or there is none at all.
    """
    chosen = np.asarray(indices)
    if chosen.size == 0:
        raise ValueError("indices is empty: a data set holds at least one image")
    if chosen.dtype.kind not in "iu":
        raise TypeError(
            f"indices is {chosen.dtype}: must be integers; "
            "turn a Boolean mask into them with numpy.flatnonzero(mask)"
        )
    if chosen.ndim != 1:
        raise ValueError(f"indices has shape {chosen.shape}: must be one-dimensional")
    if chosen.min() < 0 or chosen.max() >= count:
        worst = chosen.min() if chosen.min() < 0 else chosen.max()
        raise ValueError(f"indices holds {worst}: must be 0 to {count - 1}")
    return chosen


def checked_size(size: int | tuple[int, int] | None) -> tuple[int, int] | None:
    """Return height and width, each at least 1, or None; `size` may be one side of a square."""
    if size is None:
        return None
    pair = size if isinstance(size, tuple) else (size, size)
    if len(pair) != 2:
        raise ValueError(f"size = {size!r}: must be one side or (height, width)")
    height, width = (checked_integer("size", side) for side in pair)
    if height < 1 or width < 1:
        raise ValueError(f"size = {size!r}: height and width must be at least 1")
    return height, width
