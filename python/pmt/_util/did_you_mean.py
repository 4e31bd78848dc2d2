"""The remedy of an error about an unknown name: the known one that is nearest, or all of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["did_you_mean", "nearest"]

# Typing errors seldom touch the first letter; "model" is not meant to be "node".
_LIKENESS, _LIKENESS_OF_OTHER_LETTER = 0.65, 0.75


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is spelled most alike, upper and lower case aside, or None."""
    wanted = str(name).lower()
    spelled = {str(k).lower(): str(k) for k in known}
    same_letter = [k for k in spelled if k[:1] == wanted[:1]]
    near = difflib.get_close_matches(
        wanted, spelled, n=1, cutoff=_LIKENESS_OF_OTHER_LETTER
    ) or difflib.get_close_matches(wanted, same_letter, n=1, cutoff=_LIKENESS)
    return spelled[near[0]] if near else None


def did_you_mean(name: str, known: Iterable[str], choose: str = "choose one of") -> str:
    """Return ``"; did you mean 'x'?"``, or the names that there are where none is near."""
    names = [str(k) for k in known]
    near = nearest(name, names)
    return f"; did you mean {near!r}?" if near else f"; {choose} {', '.join(names)}"
