"""An error that names options, in the words of whoever gave them."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["OptionError"]


class OptionError(ValueError):
    """An option, or several together, that cannot be.

    Python reads ``held_out 0: ...`` where the command line says ``--held-out 0: ...``.

    Parameters
    ----------
    *parts : str
        Name of an option, text, name of another option, text, and so on.
    """

    def __init__(self, *parts: str) -> None:
        super().__init__(*parts)
        self.parts = parts

    def __str__(self) -> str:
        return "".join(self.parts)

    def named(self, name: Callable[[str], str]) -> str:
        """Return the message with options as ``name`` calls them."""
        return "".join(name(p) if i % 2 == 0 else p for i, p in enumerate(self.parts))
