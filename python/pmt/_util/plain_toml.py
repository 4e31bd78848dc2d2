"""The plain part of TOML, for where Python has no reader of it (3.10)."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["parse_plain_toml"]

_COMMENT = re.compile(r"""^((?:[^"#]|"(?:[^"\\]|\\.)*")*)#.*$""")
_INTEGER = re.compile(r"[+-]?(?:0x[0-9a-fA-F_]+|[0-9][0-9_]*)")


def parse_plain_toml(text: str) -> dict[str, Any]:
    """Read the part of TOML that targets are written in.

    Tables of one level; integers, floats, booleans, strings in double quotes, and arrays of them on
    one line; comments.

    Raises
    ------
    ValueError
        If a line is something else.
    """
    tables: dict[str, Any] = {}
    table = tables
    for number, whole in enumerate(text.splitlines(), 1):
        commented = _COMMENT.match(whole)
        line = (commented[1] if commented else whole).strip()
        if not line:
            continue
        if line.startswith("["):
            if not re.fullmatch(r"\[[A-Za-z0-9_-]+\]", line):
                raise ValueError(f"line {number}: {line} is no table of one level")
            table = tables.setdefault(line[1:-1], {})
            if not isinstance(table, dict):
                raise ValueError(f"line {number}: {line} is a value already")
            continue
        key, separator, value = (part.strip() for part in line.partition("="))
        if not separator or not re.fullmatch(r"[A-Za-z0-9_-]+", key):
            raise ValueError(f"line {number}: {line} is not `key = value`")
        table[key] = _value(value, number)
    return tables


def _value(text: str, number: int) -> Any:
    if _INTEGER.fullmatch(text):
        return int(text.replace("_", ""), 0)
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise ValueError(
            f"line {number}: {text} is no number, string in double quotes or array on one line; "
            "Python 3.11, or tomli, reads all of TOML"
        ) from None
