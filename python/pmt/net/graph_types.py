"""The types of a graph's fields, checked before anything computes with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from pmt._util.checks import kind_of


class _Rule(NamedTuple):
    """Whether a value is of a type, and that type in words, which follow "must be"."""

    holds: Callable[[object], bool]
    words: str


def _instance(kinds: tuple[type, ...], words: str) -> _Rule:
    return _Rule(lambda value: isinstance(value, kinds), words)


def _sequence(rule: _Rule, words: str, count: int | None = None) -> _Rule:
    def holds(value: object) -> bool:
        fits = isinstance(value, tuple | list) and count in (None, len(value))
        return fits and all(map(rule.holds, value))  # type: ignore[call-overload]

    return _Rule(holds, words)


_TEXT = _instance((str,), "text")
_INTEGER = _instance((int, np.integer), "an integer")
_NUMBER = _instance((int, float, np.integer, np.floating), "a number")
_ARRAY = _instance((np.ndarray, type(None)), "an array, or None")
_INTEGERS = _sequence(_INTEGER, "a sequence of integers")
_NUMBERS = _sequence(_NUMBER, "a sequence of numbers")
_PAIR = _sequence(_INTEGER, "two integers", 2)

_OF_TENSOR = {
    "name": _TEXT,
    **dict.fromkeys(("height", "width", "channels", "zero_point"), _INTEGER),
    "scale": _NUMBER,
}
_OF_OP = {
    **dict.fromkeys(("kind", "name"), _TEXT),
    "inputs": _INTEGERS,
    "output": _INTEGER,
    **dict.fromkeys(("kernel", "stride", "clamp"), _PAIR),
    "padding": _sequence(_INTEGER, "four integers", 4),
    **dict.fromkeys(("weights", "bias", "weight_scales"), _ARRAY),
}
_OF_GRAPH = {
    **dict.fromkeys(("input", "output"), _INTEGER),
    **dict.fromkeys(("input_mean", "input_std"), _NUMBERS),
    "blocks": _instance((Mapping,), "a dict"),
}


def check_types(graph: Any, tensor: type, op: type) -> None:
    """Raise a TypeError if a field of a graph, its tensors or its ops is of another type."""
    for name, kind, rules in (("tensors", tensor, _OF_TENSOR), ("ops", op, _OF_OP)):
        members = getattr(graph, name)
        if not _sequence(_instance((kind,), ""), "").holds(members):
            raise TypeError(f"{name} is {kind_of(members)}: must be a list of {kind.__name__}")
        for index, member in enumerate(members):
            _check_fields(f"{name}[{index}].", member, rules)
    _check_fields("", graph, _OF_GRAPH)
    for name, layers in graph.blocks.items():
        if not _INTEGERS.holds(layers):
            raise TypeError(f"blocks[{name!r}] is {kind_of(layers)}: must be {_INTEGERS.words}")


def _check_fields(place: str, value: object, rules: Mapping[str, _Rule]) -> None:
    for name, rule in rules.items():
        found = getattr(value, name)
        if not rule.holds(found):
            raise TypeError(f"{place}{name} is {kind_of(found)}: must be {rule.words}")
