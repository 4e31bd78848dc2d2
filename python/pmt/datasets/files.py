"""Files of a data set: reading them, and the one form of error: file, problem, remedy."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pmt._util.lfs import LFS_PROBLEM, LFS_REMEDY, is_lfs_pointer
from pmt.errors import FileError, MissingFileError

REMEDY = "download it again"
# Problems that an error tells in full.
NAMED = 10
# Images that unpack further than this are a bomb; the labels of one class may, and are small.
LARGEST_RATIO = 200
ALWAYS_UNPACKED = 1 << 26  # bytes


def damaged(path: Path | str, problem: str, remedy: str) -> FileError:
    """Make the error for a file that is there but cannot be used."""
    problem, remedy = _cause(Path(path), problem, remedy)
    return FileError(str(path), [f"{problem}; {remedy}"])


def _cause(path: Path, problem: str, remedy: str) -> tuple[str, str]:
    """Return problem and remedy, those of a Git LFS pointer where the file is one."""
    return (LFS_PROBLEM, LFS_REMEDY) if is_lfs_pointer(path) else (problem, remedy)


def missing(path: Path | str, problem: str, remedy: str) -> MissingFileError:
    """Make the error for a file or folder that is not there."""
    return MissingFileError(f"{path}: {problem}; {remedy}")


@contextmanager
def reading(path: Path, remedy: str) -> Iterator[None]:
    """Turn the system's error about a file that is read into one clear error."""
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
        """Note one problem, with its file (or folder) and its remedy."""
        self._found.append((place, *_cause(Path(place), problem, remedy)))

    def raise_if_any(self) -> None:
        """Raise one FileError that names the first ten problems and counts the others."""
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
