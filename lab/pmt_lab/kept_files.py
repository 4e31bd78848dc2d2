"""Files of results that are kept in the repository: where they are from, and their JSON.

The JSON has a line for each small part, so that two versions of a file can be compared.
"""

from __future__ import annotations

import datetime
import json
import subprocess
from pathlib import Path
from typing import Any

import pmt

__all__ = ["origin", "spread_json"]


def origin() -> dict[str, Any]:
    """Return ``pmt``, the version, ``commit``, None outside of a checkout, and ``date``, in UTC."""
    return {
        "pmt": pmt.__version__,
        "commit": _commit(),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }


def _commit() -> str | None:
    """Return the commit of the checkout that holds the package; None outside of one."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


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
