"""The zip archive that ``torch.save`` writes, read without torch."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path

MAX_MEMBER_BYTES = 64 * 2**20
MAX_RATIO = 100
# RuntimeError: an encrypted member; ValueError: names that are not UTF-8.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
)


def read_pickle_bytes(path: Path) -> bytes:
    """Return the bytes of ``data.pkl`` inside the archive.

    Parameters
    ----------
    path : pathlib.Path
        The archive.

    Returns
    -------
    bytes
        The pickle; its zip CRC-32 has been checked.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not a sound zip archive with exactly one ``data.pkl``, or the pickle would unpack
        to more than 64 MiB or to more than 100 times its packed size.
    """
    if not path.is_file():
        raise FileNotFoundError(f"path: there is no file {str(path)!r}")
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.read(_pickle_member(path, archive))
    except _DAMAGE as error:
        raise ValueError(f"{path.name}: is not a sound torch zip archive: {error}") from None


def _pickle_member(path: Path, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    found = [m for m in archive.infolist() if m.filename.rpartition("/")[2] == "data.pkl"]
    if len(found) != 1:
        raise zipfile.BadZipFile(f"it has {len(found)} members named data.pkl, expected one")
    member = found[0]
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile(f"{member.filename} is packed by method {member.compress_type}")
    if member.file_size > MAX_MEMBER_BYTES:
        raise zipfile.BadZipFile(
            f"{member.filename} unpacks to {member.file_size} bytes, "
            f"more than the limit of {MAX_MEMBER_BYTES}"
        )
    if member.file_size > MAX_RATIO * max(member.compress_size, 1):
        raise zipfile.BadZipFile(
            f"{member.filename} unpacks {member.compress_size} bytes to {member.file_size}, "
            f"more than {MAX_RATIO} times as many"
        )
    held = path.stat().st_size
    if member.compress_size > held:
        raise zipfile.BadZipFile(
            f"{member.filename} claims {member.compress_size} bytes, the whole file has {held}"
        )
    return member
