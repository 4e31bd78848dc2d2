"""Parts of a study that are kept as they are measured, so that the same command goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pmt._util import atomic_file
from pmt._util.parsing import parse_json

__all__ = ["kept"]


def kept(folder: Path, name: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return a part from a folder; measure it and keep it where it is not there yet."""
    path = folder / f"{name}.json"
    if not path.exists():
        made = measure()
        folder.mkdir(parents=True, exist_ok=True)
        atomic_file.write_text(path, json.dumps(made, indent=1) + "\n")
    found: dict[str, Any] = parse_json(path.read_bytes(), path, "remove it")
    return found
