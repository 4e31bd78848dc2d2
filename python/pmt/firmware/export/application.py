"""The application of an exported folder: the user's own, once it is there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pmt.firmware.export import sources

__all__ = ["with_kept_application"]

_MAIN = "app/main.cpp"
_SELECTION = "model/selection.hpp"


def with_kept_application(out: Path, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Give a project the application of the folder that it replaces.

    Parameters
    ----------
    out : Path
        Folder of an earlier export.
    files : mapping of str to bytes
        The new project: name -> content.

    Returns
    -------
    dict of str to bytes
        The project with what ``app/`` holds. A ``main.cpp`` that nobody changed gives way where one
        export selects a block and the other does not.

    Raises
    ------
    ValueError
        If a changed ``main.cpp`` does not go with the new project.
    """
    if _MAIN not in files:
        return dict(files)
    kept = {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in (out / "app").rglob("*")
        if path.is_file()
    }
    main = kept.get(_MAIN)
    if main is not None and (_SELECTION.encode() in main) != (_SELECTION in files):
        if main not in _as_exported():
            raise ValueError(
                f"out={str(out)!r} keeps a changed {_MAIN}, which is for an export "
                f"{'without' if _SELECTION in files else 'with'} --select (select=...); move it "
                "away, or choose another folder"
            )
        kept[_MAIN] = files[_MAIN]
    others = {name: content for name, content in files.items() if not name.startswith("app/")}
    return {**others, **kept}


def _as_exported() -> tuple[bytes, ...]:
    template = sources.firmware_folder() / "template"
    return (template / "main.cpp").read_bytes(), (template / "select.cpp").read_bytes()
