"""One file over HTTP, going on where an earlier attempt stopped."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO

from pmt._util.progress import ProgressLine

CHUNK = 1 << 18
PATIENCE = 30  # seconds without a byte
USER_AGENT = "poor-mans-training"


def resumed_download(url: str, part: Path, size: int) -> None:
    """Fill a file up to its size; what an attempt got stays in it for the next one.

    A connection that ends early is opened again as long as each attempt brings something.

    Parameters
    ----------
    url
        Where from, http or https.
    part
        The file; what it holds already is taken for the beginning. If it is too long it is
        begun anew.
    size
        Bytes in all; not one more is read.

    Raises
    ------
    OSError, http.client.HTTPException
        No connection, an answer that is an error, or one that ends early without bringing any.
    """
    if _length(part) > size:
        part.unlink()
    line = ProgressLine(size // 1000 + 1, done=_length(part) // 1000, unit="kilobyte")
    try:
        while (before := _length(part)) < size:
            try:
                _append(url, part, size, line)
            except urllib.error.HTTPError:
                raise
            except (OSError, http.client.HTTPException):
                if _length(part) <= before:
                    raise
            if _length(part) <= before:
                raise ConnectionError(f"the connection ended after {before:,} of {size:,} bytes")
    finally:
        line.clear()


def _length(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _append(url: str, part: Path, size: int, line: ProgressLine) -> None:
    start = _length(part)
    headers = {"User-Agent": USER_AGENT}
    if start:
        headers["Range"] = f"bytes={start}-"
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        goes_on = start and response.status == http.client.PARTIAL_CONTENT
        with part.open("ab" if goes_on else "wb") as file:
            _copy(response, file, size, line)


def _copy(
    response: http.client.HTTPResponse, file: IO[bytes], size: int, line: ProgressLine
) -> None:
    done = file.tell()
    # `read1` gives what has arrived, so that a connection that breaks loses nothing.
    while done < size and (chunk := response.read1(min(CHUNK, size - done))):
        file.write(chunk)
        done += len(chunk)
        line.update(done // 1000, Path(file.name).name.strip(".").removesuffix(".part"))
