"""Annotation files of text, one image or class a line."""

from __future__ import annotations

from pathlib import Path

from pmt.datasets.damage import damaged, read_bytes
from pmt.datasets.problems import Problems

REMEDY = "download it again"


def read_rows(path: Path, columns: int) -> list[tuple[str, ...]]:
    """Read lines of `columns` words, the last of which may hold blanks.

    Empty lines and those that begin with ``#`` are left out.

    Raises
    ------
    FileNotFoundError
        No such file.
    ValueError
        Lines with fewer words, all of them told at once, or no line at all.
    """
    problems = Problems(path)
    rows = []
    text = read_bytes(path).decode("utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = tuple(line.strip().split(None, columns - 1))
        if len(words) != columns:
            problem = f"line {number} has {len(words)} words instead of {columns}"
            problems.add(f"{path}:{number}", problem, REMEDY)
            continue
        rows.append(words)
    problems.raise_if_any()
    if not rows:
        raise damaged(path, "holds no line", REMEDY)
    return rows


def read_numbered(path: Path) -> dict[int, str]:
    """Read lines of a whole number and a text; the numbers are the keys, each once."""
    rows = read_rows(path, 2)
    numbered = {whole(path, number): text for number, text in rows}
    if len(numbered) != len(rows):
        raise damaged(path, "holds a number twice", REMEDY)
    return numbered


def whole(path: Path, text: str) -> int:
    """Return a word as a whole number, or raise a ValueError that names the file."""
    try:
        return int(text)
    except ValueError:
        raise damaged(path, f"holds {text!r} in the place of a whole number", REMEDY) from None


def real(path: Path, text: str) -> float:
    """Return a word as a finite number, or raise a ValueError that names the file."""
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if abs(number) < 1e9:
        return number
    raise damaged(path, f"holds {text!r} in the place of a number", REMEDY) from None
