"""Options that do nothing beside the rule or loss that was chosen, and the warning of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from pmt._util.checks import OptionWarning

__all__ = ["warn_without_effect"]

_WEIGHTS = ("weight", "by_dimension", "measured")
_BY_SIZE = ("by_dimension",)
# The option that decides whether another one is read, and its values under which it is.
_DECIDES: dict[str, tuple[str, tuple[str, ...]]] = {
    "mu_weight": ("rule", _WEIGHTS),
    "mu_per_channel": ("rule", _WEIGHTS),
    "sharing": ("rule", _WEIGHTS),
    "node_ratio": ("rule", _BY_SIZE),
    "node_dimension": ("rule", _BY_SIZE),
    "regions": ("rule", ("pooled",)),
    "label_smoothing": ("loss", ("cross_entropy",)),
    "huber_delta": ("loss", ("huber",)),
    "top_k": ("loss", ("zero_one",)),
    "diversity": ("loss", ("entropy",)),
}


def warn_without_effect(options: object, given: Iterable[str], base: object) -> None:
    """Warn of options that a user gave, other than those of ``base``, that do nothing.

    Called by what the user calls: the warning names that line.
    """
    for name in given:
        decides, effective = _DECIDES.get(name, ("", ()))
        chosen = getattr(options, decides, None)
        if chosen is None or chosen in effective:
            continue
        if getattr(options, name) != getattr(base, name):
            *others, last = map(repr, effective)
            listed = " or ".join(filter(None, [", ".join(others), last]))
            parts = (name, " has no effect with ", decides, f"={chosen!r}; it has one with ")
            warnings.warn(OptionWarning(*parts, decides, f"={listed}"), stacklevel=3)
