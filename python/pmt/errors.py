"""Errors that a program may want to handle, all of one base, and the warning about options.

Each is also the built-in error that its name suggests: ``except ValueError`` catches an
:class:`OptionError`, too. Other wrong arguments raise the built-in TypeError and ValueError, as
they do in NumPy and scikit-learn.
"""

from collections.abc import Callable, Iterable

__all__ = [
    "DownloadError",
    "ExistingFileError",
    "FileError",
    "FolderBusyError",
    "MissingExtraError",
    "MissingFileError",
    "ModelBusyError",
    "OptionError",
    "OptionWarning",
    "OtherRunError",
    "PmtError",
]


def __dir__() -> list[str]:
    """Return only the public names, without imported ones."""
    return sorted(__all__)


class PmtError(Exception):
    """Base class of the errors in this module."""


class _OptionMessage:
    """A message about options, which Python and the command line call by different names.

    Python reads ``held_out 0: ...`` where the command line says ``--held-out 0: ...``. The parts
    are the name of an option, text, the name of another option, text, and so on.
    """

    def __init__(self, *parts: str) -> None:
        super().__init__(*parts)
        self.parts = parts

    def __str__(self) -> str:
        return "".join(self.parts)

    def named(self, name: Callable[[str], str]) -> str:
        """Return the message with options as ``name`` calls them."""
        return "".join(name(p) if i % 2 == 0 else p for i, p in enumerate(self.parts))


class OptionError(_OptionMessage, PmtError, ValueError):
    """An option that does not fit the model, the data or another option."""


class OptionWarning(_OptionMessage, UserWarning):
    """A remark about an option that has no effect or is missing; a warning, no error."""


class FileError(PmtError, ValueError):
    """A file that is damaged, of another kind, or needs something that pmt does not support.

    Parameters
    ----------
    path : str
        The file, as the message names it.
    problems : str or iterable of str
        Each names the place, the value, the rule and the remedy. The command line prints an error
        for each.
    message : str, optional
        The whole message; by default the problems, each after the file, joined by semicolons.
    rule : str, optional
        What every problem is, before it: ``"not supported"``.
    """

    def __init__(
        self, path: str, problems: str | Iterable[str] = (), message: str = "", rule: str = ""
    ) -> None:
        self.path = path
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        self.rule = rule
        self.message = message or "; ".join(self.lines()) or path
        # All of it, for pickle.
        super().__init__(path, self.problems, self.message, rule)

    def __str__(self) -> str:
        return self.message

    def lines(self) -> list[str]:
        """Return each problem as a message of its own."""
        place = f"{self.path}: {self.rule}: " if self.rule else f"{self.path}: "
        return [f"{place}{problem}" for problem in self.problems]


class TableError(PmtError, ValueError):
    """A message of one line with a table below it, of which the command line keeps the lines."""

    def __init__(self, message: str, table: str) -> None:
        super().__init__(message, table)
        self.message, self.table = message, table

    def __str__(self) -> str:
        return f"{self.message}\n{self.table}"


class MissingFileError(PmtError, FileNotFoundError):
    """A file, folder or data set to read that is not there."""


class ExistingFileError(PmtError, FileExistsError):
    """A file or folder in the place of one that is to be written."""


class OtherRunError(PmtError, ValueError):
    """A run folder that belongs to a run with other options, model or data."""


class FolderBusyError(PmtError, BlockingIOError):
    """A folder or a file in which another thread or process works."""


class ModelBusyError(PmtError, RuntimeError):
    """A model that another call uses: one that trains, measures or changes it runs alone."""


class DownloadError(PmtError, OSError):
    """A data set that could not be fetched or unpacked."""


class MissingExtraError(PmtError, ModuleNotFoundError):
    """An optional package that is not installed."""
