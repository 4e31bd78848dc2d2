"""Checks of arguments that several functions share."""

from __future__ import annotations

import operator


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
