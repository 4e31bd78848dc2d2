"""JSON text with a line for each small part, so that two versions of a file can be compared."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["spread_json"]


def spread_json(value: Any, levels: int, *, allow_nan: bool = False) -> str:
    """Return JSON whose first `levels` levels are spread over lines; what is flat takes one."""
    return _text(value, levels, 0, allow_nan)


def _text(value: Any, levels: int, level: int, allow_nan: bool) -> str:
    if level < levels and isinstance(value, dict | list) and not _is_flat(value):
        if isinstance(value, list):
            items = [_text(one, levels, level + 1, allow_nan) for one in value]
            return _lines("[", items, "]", level)
        items = [
            f"{json.dumps(key)}: {_text(one, levels, level + 1, allow_nan)}"
            for key, one in value.items()
        ]
        return _lines("{", items, "}", level)
    return json.dumps(value, separators=(", ", ": "), allow_nan=allow_nan)


def _is_flat(value: dict[str, Any] | list[Any]) -> bool:
    members = value.values() if isinstance(value, dict) else value
    return not any(isinstance(one, dict | list) for one in members)


def _lines(first: str, items: list[str], last: str, level: int) -> str:
    inner = "\n" + " " * (level + 1)
    return first + inner + f",{inner}".join(items) + "\n" + " " * level + last
