"""The name of a run's folder: a hash of everything that decides its bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

__all__ = ["FORMAT", "fingerprint"]

# Raise it when the meaning of an entry changes; old folders are then left alone, not mistaken.
FORMAT = 1


def fingerprint(identity: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits that stand for a run.

    Parameters
    ----------
    identity : mapping
        JSON values: model and data by checksum, protocol, method, options, seed. The order of keys
        does not matter; ``1`` and ``1.0`` differ.

    Returns
    -------
    str
        The first 64 bits of the SHA-256 of :data:`FORMAT` and the canonical JSON of ``identity``
        (sorted keys, no spaces, ASCII): the same on every machine and in every Python.

    Raises
    ------
    ValueError, TypeError
        If a value is no JSON value, or is not finite.
    """
    text = json.dumps(
        {"format": FORMAT, "identity": identity},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=True,
        allow_nan=False,
    )
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]
