"""The one form of error for a damaged or missing data file: file, problem, remedy."""

from __future__ import annotations

from pathlib import Path


def damaged(path: Path | str, problem: str, remedy: str) -> ValueError:
    """Make the error for a file that is there but cannot be used."""
    return ValueError(f"{path}: {problem}; {remedy}")


def missing(path: Path | str, problem: str, remedy: str) -> FileNotFoundError:
    """Make the error for a file or folder that is not there."""
    return FileNotFoundError(f"{path}: {problem}; {remedy}")


def read_bytes(path: Path) -> bytes:
    """Read a whole file, or raise one clear error."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise missing(path, "no such file", "download the data set again") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise damaged(path, f"cannot be read ({reason})", "check the file and its rights") from None
