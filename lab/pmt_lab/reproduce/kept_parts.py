"""Parts of a study that are kept as they are measured, so that the same command continues."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pmt import _core
from pmt._util import atomic_file
from pmt._util.parsing import parse_json

__all__ = ["find_kept", "kept"]


def kept(
    folder: Path, name: str, of: Mapping[str, Any], measure: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Return a part from a folder; measure it and keep it where it is not there yet.

    Parameters
    ----------
    folder : pathlib.Path
        Folder of the study; it is made if it is missing.
    name : str
        Name of the part, of its file.
    of : dict
        JSON values that the part depends on. One of others, or of another version of pmt, is
        measured again.
    measure : callable
        Does the work and returns JSON values.

    Returns
    -------
    dict
        The part.
    """
    found = find_kept(folder, name, of)
    if found is None:
        found = measure()
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"of": _whole(of), "found": found}, indent=1)
        atomic_file.write_text(folder / f"{name}.json", text + "\n")
        found = json.loads(text)["found"]
    return found


def find_kept(folder: Path, name: str, of: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a part that is in the folder; None where it is missing, or of something else."""
    path = folder / f"{name}.json"
    if not path.exists():
        return None
    part = parse_json(path.read_bytes(), path, "remove it")
    if not isinstance(part, dict) or part.get("of") != _whole(of):
        return None
    found = part.get("found")
    return found if isinstance(found, dict) else None


def _whole(of: Mapping[str, Any]) -> dict[str, Any]:
    return {"pmt": _core.__version__, **of}
