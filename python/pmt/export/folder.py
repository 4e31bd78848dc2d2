"""The folder that an export writes: whole, or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

__all__ = ["MANIFEST", "check_folder", "write_folder"]

MANIFEST = "export.json"


def check_folder(out: Path, force: bool) -> None:
    """Refuse to write over what no export has written.

    Parameters
    ----------
    out : pathlib.Path
        The folder to be written.
    force : bool
        Write whatever it holds.

    Raises
    ------
    FileExistsError
        If it is neither new nor empty nor an earlier export.
    """
    if not out.exists() or force:
        return
    if out.is_dir() and ((out / MANIFEST).is_file() or not any(out.iterdir())):
        return
    raise FileExistsError(
        f"out={str(out)!r} exists and is no earlier export; choose another folder, or overwrite "
        "it with --force (force=True)"
    )


def write_folder(out: Path, files: dict[str, bytes]) -> None:
    """Write a project aside and rename it into place.

    Parameters
    ----------
    out : pathlib.Path
        The folder; what it holds is replaced.
    files : dict of str to bytes
        Path in it -> content.

    Raises
    ------
    OSError
        If it cannot be written; what was there is unchanged.
    """
    aside = out.with_name(f".{out.name}.{os.getpid()}.part")
    old = out.with_name(f".{out.name}.{os.getpid()}.old")
    try:
        for name, content in files.items():
            path = aside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if out.exists():
            out.rename(old)
        aside.rename(out)
    except OSError as error:
        if old.exists() and not out.exists():
            old.rename(out)
        raise OSError(
            error.errno,
            f"the project could not be written ({error.strerror}); what was there is unchanged; "
            "free some space or choose another folder",
            str(out),
        ) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    if old.is_dir():
        shutil.rmtree(old)
    else:
        old.unlink(missing_ok=True)
