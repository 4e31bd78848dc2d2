"""Options that have no effect with the other options, and the warning of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from pmt._util.checks import OptionWarning

__all__ = ["warn_without_effect"]

_Choices = dict[str, tuple[str, ...]]

_BY_WEIGHT: _Choices = {"rule": ("weight", "by_dimension")}
# Options, and the choices under which they are read: any one of a row, and one of each row.
_READ_WITH: tuple[tuple[tuple[str, ...], _Choices], ...] = (
    (("mu_weight", "sharing"), _BY_WEIGHT),
    (("mu_node",), {"rule": ("node", "by_dimension", "pooled", "free_node")}),
    (("node_ratio", "node_dimension"), {"rule": ("by_dimension",)}),
    (("diversity",), {"loss": ("entropy",)}),
)


def warn_without_effect(options: object, given: Iterable[str], base: object) -> None:
    """Warn of options that a user gave, other than those of ``base``, that have no effect.

    Called by what the user calls: the warning names that line.
    """
    for name in given:
        if getattr(options, name, None) == getattr(base, name, None):
            continue
        for choices in (row for names, row in _READ_WITH if name in names):
            chosen = {option: getattr(options, option, None) for option in choices}
            if all(v is not None and v not in choices[o] for o, v in chosen.items()):
                warnings.warn(_warning(name, chosen, choices), stacklevel=3)


def _warning(name: str, chosen: Mapping[str, Any], choices: _Choices) -> OptionWarning:
    """Name the option, the choices made, and those with which it has an effect."""
    made = [part for option, value in chosen.items() for part in (option, f"={value!r}, ")]
    made[-1] = made[-1].removesuffix(", ") + "; it has one with "
    needed = [
        part for option, values in choices.items() for part in (option, f"={_any_of(values)} or ")
    ]
    needed[-1] = needed[-1].removesuffix(" or ")
    return OptionWarning(name, " has no effect with ", *made, *needed)


def _any_of(values: tuple[str, ...]) -> str:
    *others, last = map(repr, values)
    return " or ".join(filter(None, [", ".join(others), last]))
