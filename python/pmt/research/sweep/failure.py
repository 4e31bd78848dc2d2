"""``HASH.failed`` beside a run's folder: which run ended with an error, for the reports."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pmt._util import atomic_file
from pmt._util.parsing import parse_json
from pmt.research.sweep.run_spec import RunSpec

__all__ = ["forget_failure", "is_failure", "note_failure", "read_failures"]

_SUFFIX = ".failed"
_REMEDY = "remove the file"
_TABLES = ("axes", "options", "contents", "protocol", "order")
_TEXTS = ("base", "trainer", "error")


def note_failure(spec: RunSpec, out: Path, error: str) -> None:
    """Write down that a run failed, as far as the disk has room for it."""
    record = {**spec.definition(), "error": error, **({"trial": True} if spec.trial else {})}
    with suppress(OSError):
        text = json.dumps(record, indent=1, sort_keys=True)
        atomic_file.write_text(out / f"{spec.hash}{_SUFFIX}", text + "\n")


def forget_failure(spec: RunSpec, out: Path) -> None:
    """Remove what was written when the run failed before."""
    with suppress(OSError):
        (out / f"{spec.hash}{_SUFFIX}").unlink(missing_ok=True)


def read_failures(out: Path) -> dict[str, dict[str, Any]]:
    """Return the failed runs of a folder by their hash, without trials of learning rates.

    Raises
    ------
    ValueError
        If a file is damaged.
    """
    return dict(_failures(sorted(out.glob(f"*{_SUFFIX}"))))


def is_failure(record: Any) -> bool:
    """Whether it holds what reports read of a failed run."""
    return (
        isinstance(record, dict)
        and all(isinstance(record.get(name), dict) for name in _TABLES)
        and all(isinstance(record.get(name), str) for name in _TEXTS)
        and all(isinstance(place, int) for place in record["order"].values())
        and "seed" in record["axes"]
    )


def _failures(paths: Iterable[Path]) -> Iterable[tuple[str, dict[str, Any]]]:
    for path in paths:
        try:
            text = path.read_bytes()
        except FileNotFoundError:  # another process has just finished the run
            continue
        record = parse_json(text, path, _REMEDY)
        if not is_failure(record):
            raise ValueError(f"{path}: is not a failed run of a sweep; {_REMEDY}")
        if not record.get("trial"):
            yield path.stem, record
