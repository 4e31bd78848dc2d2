"""What a method is: a kind of trainer with options, and its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Method"]


@dataclass(frozen=True)
class Method:
    """A method.

    Attributes
    ----------
    summary : str
        What it does, in a line.
    source : str
        Publication, and where in it.
    kind : str
        Kind of trainer, as in a run folder's ``config.toml``.
    options : dict
        Options that differ from those of the kind (with ``preset``, from the preset's).
    preset : str
        Of zeroth-order methods: what ``options`` start from.
    """

    summary: str
    source: str
    kind: str = "zeroth_order"
    options: Mapping[str, Any] = field(default_factory=dict)
    preset: str = "default"
