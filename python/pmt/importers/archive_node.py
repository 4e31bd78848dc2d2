"""Typed access to the nested dicts of an untrusted archive, with the place in every error."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from pmt.importers.safe_pickle import PickledArray


class Node:
    """One dict of the archive and where it stands.

    Every method raises ``ValueError`` with the place, the key and the rule if the value is missing
    or is not what the method says.
    """

    def __init__(self, value: Any, place: str) -> None:
        self._place = place
        if not isinstance(value, dict):
            raise ValueError(f"{place}: is a {type(value).__name__}, expected a dict")
        self._values = value

    def fail(self, key: str, problem: str) -> NoReturn:
        """Raise the ``ValueError`` for a key of this node."""
        raise ValueError(f"{self._place}: {key!r} {problem}")

    def child(self, key: str) -> Node:
        """Return the dict under ``key``."""
        return Node(self._get(key), f"{self._place}, {key}")

    def children(self, key: str, limit: int) -> list[Node]:
        """Return the list of dicts under ``key``, at most ``limit`` of them."""
        values = self._get(key)
        if not isinstance(values, list) or not 1 <= len(values) <= limit:
            self.fail(key, f"must be a list of 1 to {limit} dicts")
        return [Node(value, f"{self._place}, {key}[{i}]") for i, value in enumerate(values)]

    def is_none(self, key: str) -> bool:
        """Whether the key is absent or ``None``."""
        return self._values.get(key) is None

    def require_none(self, key: str, reason: str) -> None:
        """Refuse any value under ``key``."""
        if not self.is_none(key):
            self.fail(key, f"is set: {reason}")

    def integer(self, key: str, low: int, high: int) -> int:
        """Return an integer in [low, high]."""
        value = self._get(key)
        if type(value) is not int or not low <= value <= high:
            self.fail(key, f"is {_short(value)}, expected an integer in [{low}, {high}]")
        return value

    def kernel(self, key: str, limit: int) -> tuple[int, int]:
        """Return (height, width) of a kernel, odd numbers up to ``limit``."""
        value = self._get(key)
        if (
            not isinstance(value, tuple)
            or len(value) != 2
            or not all(type(n) is int and 1 <= n <= limit and n % 2 for n in value)
        ):
            self.fail(key, f"is {_short(value)}, expected two odd numbers up to {limit}")
        return value[0], value[1]

    def quantisation(self, prefix: str) -> tuple[float, int]:
        """Return (scale, zero point) stored under ``prefix_scale`` and ``prefix_zero``."""
        key = f"{prefix}_scale"
        scale = self._get(key)
        if type(scale) is not float or not math.isfinite(scale) or not 1e-30 < scale < 1e30:
            self.fail(key, f"is {_short(scale)}, expected a positive number")
        return scale, self.integer(f"{prefix}_zero", -128, 127)

    def array(self, key: str, dtype: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return a copy of an array with exactly this dtype and shape."""
        value = self._get(key)
        array = value.array if isinstance(value, PickledArray) else None
        if array is None:
            self.fail(key, f"is a {type(value).__name__}, expected an array")
        if array.dtype != dtype or array.shape != shape:
            self.fail(
                key,
                f"is {array.dtype} of shape {array.shape}, expected {np.dtype(dtype)} of {shape}",
            )
        if array.dtype == np.float32 and not np.all(np.isfinite(array) & (array > 0)):
            self.fail(key, "must be positive and finite")
        return array.copy()

    def _get(self, key: str) -> Any:
        if key not in self._values:
            self.fail(key, "is missing; this is not a tiny-training network")
        return self._values[key]


def _short(value: Any) -> str:
    text = repr(value) if isinstance(value, int | float | str) else f"a {type(value).__name__}"
    return text[:60]
