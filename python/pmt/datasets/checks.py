"""Checks of arguments and files, and the one form of error: file, problem, remedy."""

from __future__ import annotations

import operator
from pathlib import Path

import numpy as np
import numpy.typing as npt


def checked_integer(argument: str, value: object) -> int:
    """Return `value` as an int, or raise a TypeError that names `argument`."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{argument} = {value!r}: must be an integer") from None


def checked_seed(seed: object) -> int:
    """Return `seed` as an int of at least 0, or raise a TypeError or ValueError."""
    checked = checked_integer("seed", seed)
    if checked < 0:
        raise ValueError(f"seed = {checked}: a seed is 0 or more")
    return checked


def checked_indices(indices: npt.ArrayLike, count: int) -> npt.NDArray[np.integer]:
    """Return `indices` of a data set of `count` images as an array of shape (M,), M at least 1.

    Raises
    ------
    TypeError
        They are not integers (a Boolean mask, for instance).
    ValueError
        One is out of range, the shape is wrong, or there is none at all.
    """
    chosen = np.asarray(indices)
    if chosen.size == 0:
        raise ValueError("indices is empty: a data set holds at least one image")
    if chosen.dtype.kind not in "iu":
        raise TypeError(
            f"indices is {chosen.dtype}: must be integers; "
            "turn a Boolean mask into them with numpy.flatnonzero(mask)"
        )
    if chosen.ndim != 1:
        raise ValueError(f"indices has shape {chosen.shape}: must be one-dimensional")
    if chosen.min() < 0 or chosen.max() >= count:
        worst = chosen.min() if chosen.min() < 0 else chosen.max()
        raise ValueError(f"indices holds {worst}: must be 0 to {count - 1}")
    return chosen


def checked_size(size: int | tuple[int, int] | None) -> tuple[int, int] | None:
    """Return height and width, each at least 1, or None; `size` may be one side of a square."""
    if size is None:
        return None
    pair = size if isinstance(size, tuple) else (size, size)
    if len(pair) != 2:
        raise ValueError(f"size = {size!r}: must be one side or (height, width)")
    height, width = (checked_integer("size", side) for side in pair)
    if height < 1 or width < 1:
        raise ValueError(f"size = {size!r}: height and width must be at least 1")
    return height, width


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


NAMED = 10


class Problems:
    """What is wrong with the files of a data set.

    Parameters
    ----------
    folder
        The data set: its path stands before the problems, and theirs are relative to it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._found: list[tuple[Path | str, str, str]] = []

    def add(self, place: Path | str, problem: str, remedy: str) -> None:
        """Note one problem, with the file (or folder) it is in, and what helps."""
        self._found.append((place, problem, remedy))

    def __len__(self) -> int:
        """Return how many were noted."""
        return len(self._found)

    def raise_if_any(self) -> None:
        """Raise one ValueError that names the first ten problems and counts the others."""
        if not self._found:
            return
        if len(self._found) == 1:
            raise damaged(*self._found[0])
        named = [f"{self._relative(place)}: {text}" for place, text, _ in self._found[:NAMED]]
        if len(self._found) > NAMED:
            named.append(f"and {len(self._found) - NAMED} more")
        remedies = dict.fromkeys(remedy for _, _, remedy in self._found)
        raise damaged(
            self.folder, f"{len(self._found)} problems: {'; '.join(named)}", "; ".join(remedies)
        )

    def _relative(self, place: Path | str) -> str:
        path = Path(place)
        return str(path.relative_to(self.folder) if path.is_relative_to(self.folder) else place)


# Images that unpack further than this are a bomb; the labels of one class may, and are small.
LARGEST_RATIO = 200
ALWAYS_UNPACKED = 1 << 26  # bytes


def largest_unpacked(packed: int) -> int:
    """Return the most bytes that `packed` bytes may become."""
    return max(LARGEST_RATIO * packed, ALWAYS_UNPACKED)


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
