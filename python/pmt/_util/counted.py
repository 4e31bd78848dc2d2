"""A number with its noun: ``1 image``, ``1,500 images``."""

from __future__ import annotations

__all__ = ["counted"]


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number and its noun, in the singular where the number is 1.

    Parameters
    ----------
    count : int
        Number, written with commas between thousands.
    noun : str
        Noun in the singular.
    plural : str
        Its plural; by default with an s at the end.
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
