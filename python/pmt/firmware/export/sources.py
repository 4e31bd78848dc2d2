"""The C++ sources of an export, in the installed package or in the source tree; its targets."""

from __future__ import annotations

from pathlib import Path

from pmt.firmware.export.target import Target, read_target, target_names

__all__ = ["core_folder", "find_target", "firmware_folder", "targets"]

_PACKAGE = Path(__file__).resolve().parents[2]


def core_folder() -> Path:
    """Return the folder of the C++ core."""
    return _find("core", "cpp/core", "train/trainer.hpp")


def firmware_folder() -> Path:
    """Return the folder of boards, common code and templates."""
    return _find("firmware_export", "firmware_export", "boards")


def targets() -> tuple[str, ...]:
    """Return the names that ``export`` takes as ``target``."""
    return target_names(firmware_folder() / "boards")


def find_target(target: str) -> Target:
    """Return a target by its name, or by the path of its TOML file.

    Raises
    ------
    ValueError
        If there is no such target, or its file is wrong.
    """
    boards = firmware_folder() / "boards"
    if target in targets():
        return read_target(boards / target / "target.toml", boards)
    path = Path(target)
    if path.suffix == ".toml" and path.is_file():
        return read_target(path.resolve(), boards)
    raise ValueError(
        f"target={target!r} is unknown; choose one of {', '.join(targets())}, or give the path of "
        "a TOML file that describes a board"
    )


def _find(installed: str, in_tree: str, marker: str) -> Path:
    candidates = (_PACKAGE / "_native" / installed, _PACKAGE.parents[1] / in_tree)
    for folder in candidates:
        if (folder / marker).exists():
            return folder
    raise FileNotFoundError(
        f"the sources of the firmware are missing: neither {candidates[0]} nor {candidates[1]} "
        f"has {marker}; install poor-mans-training again"
    )
