"""Options that do nothing beside the rule that was chosen, and the warning that says so."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from pmt._util.checks import OptionWarning

__all__ = ["warn_without_effect"]

_WEIGHTS = ("weight", "by_dimension", "measured")
_BY_SIZE = ("by_dimension",)
# The rules under which an option is read.
_RULES = {
    "mu_weight": _WEIGHTS,
    "mu_per_channel": _WEIGHTS,
    "sharing": _WEIGHTS,
    "node_ratio": _BY_SIZE,
    "node_dimension": _BY_SIZE,
}


def warn_without_effect(options: object, given: Iterable[str], base: object) -> None:
    """Warn of options that a user gave, other than those of ``base``, that do nothing.

    Called by what the user calls: the warning names that line.
    """
    rule = getattr(options, "rule", None)
    for name in given:
        rules = _RULES.get(name, ())
        if rule is None or not rules or rule in rules:
            continue
        if getattr(options, name) != getattr(base, name):
            *others, last = map(repr, rules)
            effective = " or ".join(filter(None, [", ".join(others), last]))
            parts = (name, " has no effect with ", "rule", f"={rule!r}; it has one with ")
            warnings.warn(OptionWarning(*parts, "rule", f"={effective}"), stacklevel=3)
