"""Declared options as arguments: flag, metavar, type and help follow from the declaration."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Any

from pmt.train.option_fields import Option

__all__ = ["add_options", "converter", "option_help", "shown"]


def add_options(
    group: argparse._ActionsContainer,
    options: Iterable[Option],
    notes: Callable[[Option], str] = lambda option: "",
) -> None:
    """Add an argument for each option; one that is not given is None.

    Parameters
    ----------
    group : argparse.ArgumentParser or group
        Where to.
    options : iterable of Option
        The options.
    notes : callable, optional
        What to say of an option behind its default.
    """
    for option in options:
        how: dict[str, Any] = {"metavar": option.metavar, "type": converter(type(option.default))}
        if isinstance(option.default, bool):
            how = {"action": argparse.BooleanOptionalAction}
        text = option_help(option, notes(option))
        group.add_argument(_flag(option.name), dest=option.name, help=text, **how)


def option_help(option: Option, note: str = "") -> str:
    """Return what an option does, its values and its default."""
    notes = [option.values.shown(option.metavar), f"default: {shown(option.default)}", note]
    return f"{option.described(_flag)} ({'; '.join(filter(None, notes))})"


def shown(value: Any) -> str:
    """Return a value as help texts show it."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def converter(kind: type) -> Callable[[str], Any]:
    """Return what reads a value of some type from an argument."""

    def convert(text: str) -> Any:
        try:
            if kind is int and "e" in text:  # 2e12, as one writes a budget
                return _whole(float(text))
            return kind(text)
        except ValueError:
            wanted = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{text!r} must be {wanted}") from None

    return convert


def _whole(value: float) -> int:
    if not value.is_integer():
        raise ValueError
    return int(value)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
