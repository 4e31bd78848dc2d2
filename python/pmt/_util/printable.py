"""Untrusted text made safe for a terminal: its control characters are escaped."""

from __future__ import annotations

import re

__all__ = ["printable"]

# C0, DEL and C1; marks, overrides and isolates of direction; separators of lines; lone surrogates.
_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str, keep: str = "") -> str:
    r"""Return a text with its control characters escaped, as ``\x1b``, ``\n`` or ``\u202e``.

    Those in `keep` stay, such as the newlines of a text of several lines.
    """
    return _STEERING.sub(lambda found: found[0] if found[0] in keep else _escaped(found[0]), text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
