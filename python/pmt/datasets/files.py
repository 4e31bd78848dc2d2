"""Files of a data set: reading them, and the one form of error: file, problem, remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REMEDY = "download it again"
# Problems that an error tells in full.
NAMED = 10
# Images that unpack further than this are a bomb; the labels of one class may, and are small.
LARGEST_RATIO = 200
ALWAYS_UNPACKED = 1 << 26  # bytes


def damaged(path: Path | str, problem: str, remedy: str) -> ValueError:
    """Make the error for a file that is there but cannot be used."""
    return ValueError(f"{path}: {problem}; {remedy}")


def missing(path: Path | str, problem: str, remedy: str) -> FileNotFoundError:
    """Make the error for a file or folder that is not there."""
    return FileNotFoundError(f"{path}: {problem}; {remedy}")


@contextmanager
def reading(path: Path, remedy: str) -> Iterator[None]:
    """Turn what the system says of a file that is read into one clear error."""
    try:
        yield
    except FileNotFoundError:
        raise missing(path, "no such file", remedy) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise damaged(path, f"cannot be read ({reason})", "check the file and its rights") from None


def read_bytes(path: Path) -> bytes:
    """Read a whole file, or raise one clear error."""
    with reading(path, "download the data set again"):
        return path.read_bytes()


class Problems:
    """Problems of a data set's files; their paths are told relative to its folder."""

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


def largest_unpacked(packed: int) -> int:
    """Return the most bytes that `packed` bytes may become."""
    return max(LARGEST_RATIO * packed, ALWAYS_UNPACKED)


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
