"""Where the C++ sources of an export are: in the installed package or in the source tree."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Board", "board", "core_folder", "firmware_folder", "targets"]

_PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Board:
    """A target: its folder, memory (bytes), rough speed, and the command that runs it."""

    name: str
    folder: Path
    description: str
    flash_bytes: int
    ram_bytes: int
    stack_bytes: int
    macs_per_second: int
    run: str


def core_folder() -> Path:
    """Return the folder of the C++ core.

    Raises
    ------
    FileNotFoundError
        If the installation lacks it.
    """
    return _find("core", "cpp/core", "trainer.hpp")


def firmware_folder() -> Path:
    """Return the folder of boards, common code and templates.

    Raises
    ------
    FileNotFoundError
        If the installation lacks it.
    """
    return _find("firmware_export", "firmware_export", "boards")


def targets() -> tuple[str, ...]:
    """Return the names that ``export`` takes as ``target``."""
    return tuple(sorted(p.parent.name for p in firmware_folder().glob("boards/*/board.json")))


def board(target: str) -> Board:
    """Return a target's board.

    Raises
    ------
    ValueError
        If there is no such target.
    """
    if target not in targets():
        raise ValueError(f"target={target!r} is unknown; choose one of {', '.join(targets())}")
    folder = firmware_folder() / "boards" / target
    return Board(name=target, folder=folder, **json.loads((folder / "board.json").read_text()))


def _find(installed: str, in_tree: str, marker: str) -> Path:
    candidates = (_PACKAGE / "_native" / installed, _PACKAGE.parents[1] / in_tree)
    for folder in candidates:
        if (folder / marker).exists():
            return folder
    raise FileNotFoundError(
        f"the sources of the firmware are missing: neither {candidates[0]} nor {candidates[1]} "
        f"has {marker}; install poor-mans-training again"
    )
