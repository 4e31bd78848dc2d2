"""``HASH.failed`` beside a run's folder: which run ended with an error, for the reports."""

from __future__ import annotations

import json
from collections.abc import Container
from contextlib import suppress
from pathlib import Path
from typing import Any

from pmt._util import atomic_file
from pmt._util.parsing import parse_json
from pmt_lab.sweep.run_spec import RunSpec

__all__ = ["forget_failure", "is_failure", "note_failure", "read_failures"]

_SUFFIX = ".failed"
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


def read_failures(
    out: Path, finished: Container[str] = ()
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Read the failed runs of a folder, without trials of learning rates.

    Parameters
    ----------
    out : pathlib.Path
        Folder of the sweep.
    finished : container of str
        Hashes of runs that have a result, whose failures count no more.

    Returns
    -------
    failed : dict of str to dict
        Records of the failed runs, by hash.
    unreadable : list of str
        Hashes of those whose record is damaged.
    """
    failed, unreadable = {}, []
    for path in sorted(out.glob(f"*{_SUFFIX}")):
        if path.stem in finished:
            continue
        try:
            record = parse_json(path.read_bytes(), path)
        except FileNotFoundError:  # another process has just tried the run again
            continue
        except (OSError, ValueError):
            record = None
        if not is_failure(record):
            unreadable.append(path.stem)
        elif not record.get("trial"):
            failed[path.stem] = record
    return failed, unreadable


def is_failure(record: Any) -> bool:
    """Whether it holds what reports read of a failed run."""
    return (
        isinstance(record, dict)
        and all(isinstance(record.get(name), dict) for name in _TABLES)
        and all(isinstance(record.get(name), str) for name in _TEXTS)
        and all(isinstance(place, int) for place in record["order"].values())
        and "seed" in record["axes"]
    )
