"""``result.json``: what a finished run of a sweep came to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pmt._util.parsing import parse_json

__all__ = ["RESULT", "read_result"]

RESULT = "result.json"
_REMEDY = "remove the file, and the sweep makes it again"
_TABLES = ("axes", "options", "contents", "protocol", "before", "after")
_NUMBERS = ("accuracy", "loss", "n", "crc32")


def read_result(folder: Path) -> dict[str, Any] | None:
    """Return a run's result; None if it has none yet.

    Raises
    ------
    ValueError
        If the file is damaged.
    """
    path = folder / RESULT
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    result = parse_json(text, path, _REMEDY, finite=False)  # a loss may have become infinite
    if not _is_result(result):
        raise ValueError(f"{path}: is no result of a run; {_REMEDY}")
    assert isinstance(result, dict)
    return result


def _is_result(result: Any) -> bool:
    if not isinstance(result, dict):
        return False
    if not all(isinstance(result.get(name), dict) for name in _TABLES):
        return False
    measured = [*result["before"].values(), *result["after"].values()]
    return (
        "seed" in result["axes"]
        and all(isinstance(result.get(name), str) for name in ("base", "trainer"))
        and all(isinstance(one, dict) for one in measured)
        and all(isinstance(one.get(name), int | float) for one in measured for name in _NUMBERS)
    )
