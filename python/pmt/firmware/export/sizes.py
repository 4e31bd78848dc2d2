"""Memory sizes as people write them: ``256K``, ``1M``, ``327680``."""

from __future__ import annotations

import re

__all__ = ["parse_size"]

_UNITS = {"": 1, "K": 1024, "M": 1024 * 1024}


def parse_size(name: str, value: str | int) -> int:
    """Return a size in bytes.

    Parameters
    ----------
    name : str
        The argument's name, for the message.
    value : str or int
        Bytes, or a number with the unit ``K`` (1024 bytes) or ``M`` (1024 K).

    Raises
    ------
    ValueError
        If the value is no size above 0.
    """
    match = re.fullmatch(r"([0-9]+)\s*([KM]?)(?:i?B)?", str(value).strip(), re.IGNORECASE)
    size = int(match[1]) * _UNITS[match[2].upper()] if match else 0
    if size < 1:
        raise ValueError(f"{name}={value!r} must be a number of bytes, such as 262144, 256K or 1M")
    return size
