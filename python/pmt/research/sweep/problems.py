"""Everything that is wrong with a grid file, said at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["GridError", "Problems", "did_you_mean"]


class GridError(ValueError):
    """A grid that cannot be run.

    Attributes
    ----------
    path : str
        The grid file.
    problems : tuple of str
        Each names the place, the value, the rule and the remedy.
    """

    def __init__(self, path: str, problems: Iterable[str]) -> None:
        self.path = path
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{path}: {problem}" for problem in self.problems))


class Problems:
    """Collects what is wrong, so that a user mends it in one go.

    Parameters
    ----------
    path : str
        The grid file, for the error.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.found: list[str] = []

    def add(self, problem: str) -> None:
        """Note a problem; the same one only once."""
        text = " ".join(problem.split())
        if text not in self.found:
            self.found.append(text)

    def stop(self) -> None:
        """Raise GridError if anything was found."""
        if self.found:
            raise GridError(self.path, self.found)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"``, or the names that there are where none is near."""
    names = [str(k) for k in known]
    near = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; choose one of {', '.join(names)}"
