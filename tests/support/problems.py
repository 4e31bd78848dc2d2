"""The error of a damaged file, as text."""

from collections.abc import Callable
from typing import Any


def problem_of(read: Callable[..., object], *arguments: Any) -> str | None:
    """Return the text of the ValueError of reading, None without one; no other error may come."""
    try:
        read(*arguments)
    except ValueError as error:
        return str(error)
    return None
