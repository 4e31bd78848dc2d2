"""Checks that the files which a command writes are no others that it reads or writes."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import Any

from pmt.cli.arguments import flag

__all__ = ["check_output_files"]

# Arguments that name a file to write; `--out` may be a folder, or the model that is read.
_WRITTEN = ("json", "plot", "plot_step", "keep")
_MAY_BE_READ = ("out", "write")
_READ = ("model", "against", "grid", "folders", "into", "calibrate", "eval", "data", "page", "from")


def check_output_files(arguments: argparse.Namespace) -> None:
    """Raise ValueError where one file would be written twice, or over a file that is read."""
    written: dict[str, str] = {}
    for name in (*_WRITTEN, *_MAY_BE_READ):
        for value in _paths(arguments, name):
            other = written.setdefault(os.path.realpath(value), name)
            if other != name:
                raise ValueError(
                    f"{flag(name)} {value}: is the file of {flag(other)} too; give another name"
                )
    for name in _READ:
        for value in _paths(arguments, name):
            where = written.get(os.path.realpath(value))
            if where in _WRITTEN and os.path.isfile(value):
                raise ValueError(
                    f"{flag(str(where))} {value}: would replace a file that the command reads; "
                    "give another name"
                )


def _paths(arguments: argparse.Namespace, name: str) -> Iterator[str]:
    given: Any = getattr(arguments, name, None)
    for value in given if isinstance(given, list) else [given]:
        if isinstance(value, str) and value not in ("", "-") and not _is_device(value):
            yield value


def _is_device(path: str) -> bool:
    """Whether a path is a device or pipe, which can be written more than once."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
