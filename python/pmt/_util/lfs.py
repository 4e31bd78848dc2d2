"""Pointers of Git LFS, which stand in a clone for files that were not fetched."""

from pathlib import Path

LFS_PROBLEM = "is a Git LFS pointer, not the file itself"
LFS_REMEDY = "run `git lfs pull` in its repository"

_BEGIN = b"version https://git-lfs.github.com/spec/"


def is_lfs_pointer(path: Path) -> bool:
    """Whether a file is there and begins as a pointer of Git LFS does."""
    try:
        with path.open("rb") as file:
            return file.read(len(_BEGIN)) == _BEGIN
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return False
