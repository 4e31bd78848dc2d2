"""Unpacking downloaded archives: nothing outside of the folder, not more than is meant to be."""

from __future__ import annotations

import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from pmt.datasets.files import damaged

SUFFIXES = (".tar", ".tar.gz", ".tgz", ".zip")
# Images and arrays of pixels hardly compress: the archives here unpack to at most three times their
# size. A thousand times is what deflate can reach, and what a bomb needs.
LARGEST_RATIO = 20
# For small archives, whose texts may compress well.
ALWAYS_ALLOWED = 1 << 28
MOST_MEMBERS = 1_000_000
REMEDY = "download it again from its source"


def unpack(archive: Path, folder: Path) -> int:
    """Unpack an archive into a folder, which appears whole or not at all.

    Folders and plain files are unpacked, with the usual rights; what is there already under the
    same name is replaced. A ValueError tells of an archive that is damaged or hostile: a path that
    leads out of the folder, a link or a device, more than twenty times the archive's size, or more
    than a million members. The number of files is returned.
    """
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f".{archive.name}.unpacked"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    try:
        with _opened(archive) as members:
            count = _unpack_members(archive, members, aside)
        _move_into(aside, folder)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise damaged(archive, f"not a whole archive ({error})", REMEDY) from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return count


def _unpack_members(
    archive: Path, members: Iterator[tuple[str, int, IO[bytes] | None]], aside: Path
) -> int:
    allowed = max(ALWAYS_ALLOWED, LARGEST_RATIO * archive.stat().st_size)
    count = total = 0
    for position, (name, size, content) in enumerate(members):
        total += size
        if total > allowed or position >= MOST_MEMBERS:
            problem = f"unpacks to more than {allowed:,} bytes or {MOST_MEMBERS:,} files"
            raise damaged(archive, f"{problem}, which may be a bomb", REMEDY)
        target = aside / _plain_name(archive, name)
        if content is None:
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        with content, target.open("wb") as file:
            _copy(archive, content, file, size)
        count += 1
    return count


def _copy(archive: Path, content: IO[bytes], file: IO[bytes], size: int) -> None:
    """Copy `size` bytes and not one more: a zip's list may say less than is in it."""
    left = size
    while chunk := content.read(min(left + 1, 1 << 20)):
        left -= len(chunk)
        if left < 0:
            raise damaged(archive, "holds more than its list says", REMEDY)
        file.write(chunk)
    if left:
        raise damaged(archive, "is truncated", REMEDY)


@contextmanager
def _opened(archive: Path) -> Iterator[Iterator[tuple[str, int, IO[bytes] | None]]]:
    if archive.name.endswith(".zip"):
        with zipfile.ZipFile(archive) as opened:
            yield _zip_members(archive, opened)
    elif archive.name.endswith(SUFFIXES):
        with tarfile.open(archive, "r:*") as opened:
            yield _tar_members(archive, opened)
    else:
        raise damaged(archive, f"not one of {', '.join(SUFFIXES)}", "unpack it yourself")


def _tar_members(
    archive: Path, opened: tarfile.TarFile
) -> Iterator[tuple[str, int, IO[bytes] | None]]:
    for member in opened:
        if member.isdir():
            yield member.name, 0, None
        elif member.isreg():
            yield member.name, member.size, opened.extractfile(member)
        else:
            raise damaged(archive, f"holds {member.name!r}, a link or a device", REMEDY)


def _zip_members(
    archive: Path, opened: zipfile.ZipFile
) -> Iterator[tuple[str, int, IO[bytes] | None]]:
    for member in opened.infolist():
        mode = member.external_attr >> 16
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR) or member.flag_bits & 1:
            raise damaged(archive, f"holds {member.filename!r}, a link or encrypted", REMEDY)
        if member.is_dir():
            yield member.filename, 0, None
        else:
            yield member.filename, member.file_size, opened.open(member)


def _plain_name(archive: Path, name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    unfit = "\\" in name or "\0" in name or ":" in name
    if unfit or path.is_absolute() or ".." in path.parts:
        raise damaged(archive, f"holds {name!r}, which leads out of the folder", REMEDY)
    return path


def _move_into(source: Path, folder: Path) -> None:
    """Move everything of `source` into `folder`, joining folders that both have."""
    for path in sorted(source.iterdir()):
        target = folder / path.name
        if path.is_dir() and target.is_dir():
            _move_into(path, target)
        else:
            path.replace(target)
