"""Several problems of one data set, gathered to be told in one error."""

from __future__ import annotations

from pathlib import Path

from pmt.datasets.damage import damaged

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
