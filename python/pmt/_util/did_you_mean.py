"""The remedy of an error about an unknown name: the known one that is nearest, or all of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["did_you_mean", "nearest"]

# Below it words such as "teach" and "bench" pass for one another.
_LEAST_LIKENESS = 0.65


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is spelled most alike, upper and lower case aside, or None."""
    spelled = {str(k).lower(): str(k) for k in known}
    near = difflib.get_close_matches(str(name).lower(), spelled, n=1, cutoff=_LEAST_LIKENESS)
    return spelled[near[0]] if near else None


def did_you_mean(name: str, known: Iterable[str], choose: str = "choose one of") -> str:
    """Return ``"; did you mean 'x'?"``, or the names that there are where none is near."""
    names = [str(k) for k in known]
    near = nearest(name, names)
    return f"; did you mean {near!r}?" if near else f"; {choose} {', '.join(names)}"
