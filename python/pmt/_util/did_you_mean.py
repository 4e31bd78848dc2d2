"""The remedy of an error about an unknown name: the known one that is nearest, or all of them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

__all__ = ["did_you_mean", "nearest"]

# Typing errors seldom touch the first letter; "model" is not meant to be "node", "limit" not to be
# "list". Less is enough for swapped letters, and for names that begin alike.
_LIKENESS, _LIKENESS_OF_OTHER_LETTER, _LIKENESS_OF_ALIKE = 0.7, 0.75, 0.65
_SAME_BEGINNING = 4


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is spelled most alike, or None.

    Upper and lower case do not count, nor the dashes before a flag, which make all flags alike.
    Initials are as good as the name: ``lr`` is ``learning_rate``.
    """
    wanted = _plain(name)
    spelled = {_plain(k): str(k) for k in known}
    abbreviated = [k for k in spelled if _initials(k) == wanted]
    if len(abbreviated) == 1:
        return spelled[abbreviated[0]]
    for candidates, likeness in (
        (list(spelled), _LIKENESS_OF_OTHER_LETTER),
        ([k for k in spelled if k[:1] == wanted[:1]], _LIKENESS),
        ([k for k in spelled if _are_alike(k, wanted)], _LIKENESS_OF_ALIKE),
    ):
        near = difflib.get_close_matches(wanted, candidates, n=1, cutoff=likeness)
        if near:
            return spelled[near[0]]
    return None


def _plain(name: object) -> str:
    return str(name).lower().lstrip("-")


def _are_alike(one: str, other: str) -> bool:
    """Whether letters are only swapped, or both begin alike."""
    shorter = min(len(one), len(other), _SAME_BEGINNING)
    return sorted(one) == sorted(other) or one[:shorter] == other[:shorter]


def _initials(name: str) -> str | None:
    """Return the first letters of a name of several words."""
    words = [word for word in re.split("[-_]", name) if word]
    return "".join(word[0] for word in words) if len(words) > 1 else None


def did_you_mean(name: str, known: Iterable[str], choose: str = "choose one of") -> str:
    """Return ``"; did you mean 'x'?"``, or the names that there are where none is near."""
    names = [str(k) for k in known]
    near = nearest(name, names)
    return f"; did you mean {near!r}?" if near else f"; {choose} {', '.join(names)}"
