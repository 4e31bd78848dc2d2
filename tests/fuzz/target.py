"""A reader that is fuzzed, and the rule it must keep.

A reader may return, or raise a ValueError that names the file. Anything else is a finding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pmt._util.checks import FileProblems


@dataclass(frozen=True)
class Target:
    """One reader. ``wrap`` makes the file of the fuzzed bytes, where a checksum would stop them."""

    file_name: str
    read: Callable[[Path], object]
    seeds: Callable[[], list[bytes]]
    wrap: Callable[[bytes], bytes] = bytes


def check(target: Target, folder: Path, data: bytes) -> bool:
    """Read `data`; return whether it was accepted. Anything but a clear refusal is raised."""
    path = folder / target.file_name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(target.wrap(data))
    try:
        target.read(path)
    except ValueError as error:
        if type(error) not in (ValueError, FileProblems) or path.name not in str(error):
            raise AssertionError(
                f"an error that does not say which file is damaged: {error!r}"
            ) from error
        return False
    return True
