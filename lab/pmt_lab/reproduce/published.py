"""The paper's numbers; ``published.toml`` is the only place that has them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from pmt._util.parsing import parse_toml

__all__ = ["published"]

_FILE = Path(__file__).with_suffix(".toml")


def published(study: str) -> dict[str, Any]:
    """Return the paper's numbers of a study; empty where the paper shows no number."""
    table: dict[str, Any] = _tables().get(study, {})
    return table


@cache
def _tables() -> dict[str, Any]:
    return parse_toml(_FILE.read_bytes(), _FILE)
