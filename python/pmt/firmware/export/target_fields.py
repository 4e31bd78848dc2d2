"""Rules for the values of a target: they go into build files, and must not run anything there."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

__all__ = ["WORD", "check_value", "check_word"]


class _Text(NamedTuple):
    """A pattern for the whole of a string, and the rule in words."""

    pattern: str
    rule: str


class _Number(NamedTuple):
    """The smallest and largest value, and what it must be a multiple of."""

    low: int
    high: int
    multiple: int = 1


WORD = _Text(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}",
    "must be up to 64 letters, digits, '.', '_' and '-', and begin with a letter or digit",
)
_SCRIPT = r"[A-Za-z0-9][A-Za-z0-9_-]*(?:[./][A-Za-z0-9][A-Za-z0-9_-]*)*\.cfg"
# Neither a file's name (plug-ins, reports) nor what changes the arithmetic.
_INEXACT = r"(?:fast|unsafe|associative|reciprocal|finite|single)-|no-signed-zeros|fp-"
_FLAGS = (
    r"-m[a-z0-9-]+(?:=[A-Za-z0-9][A-Za-z0-9.+_-]*)?",
    r"-D[A-Za-z_][A-Za-z0-9_]*(?:=[A-Za-z0-9_.+-]*)?",
    r"-O[0-3gs]",
    rf"-f(?!{_INEXACT})[a-z0-9-]+(?:=[0-9]+)?",
    r"-W[a-z0-9+-]+(?:=[0-9]+)?",
)
_TEXTS = {
    # It is shown to people, and written to the README and to JSON.
    "description": _Text(r".{1,200}", "must be a line of 1..200 characters that can be printed"),
    "flags": _Text(
        "|".join(_FLAGS),
        "must be one of a compiler's options -m..., -D..., -O0..-O3, -Og, -Os, -f... and -W..., "
        "without a file's name or characters of the shell, and none that changes the arithmetic",
    ),
    "run": _Text(r"make(?: [a-z][a-z0-9-]*)*", "must be `make` and goals of the exported Makefile"),
    "flashing.openocd": _Text(
        rf"{_SCRIPT}(?: {_SCRIPT})*",
        "must be OpenOCD's names of scripts, such as board/stm32f7discovery.cfg",
    ),
}
_ADDRESS = _Number(0, 2**32 - 1024, 1024)
_SIZE = _Number(1024, 2**32, 1024)
_NUMBERS = {
    "clock_hz": _Number(1_000, 4_000_000_000),
    "stack_bytes": _Number(1024, 2**24, 8),
    "flash.origin": _ADDRESS,
    "flash.bytes": _SIZE,
    "ram.origin": _ADDRESS,
    "ram.bytes": _SIZE,
}
_ANY_NUMBER = _Number(0, 2**32 - 1)


def check_value(field: str, value: Any) -> None:
    """Check a value by the rule of its field; a field without its own has a strict one.

    Parameters
    ----------
    field : str
        Name of the entry, with its table: ``"emulator.machine"``.
    value : object
        What the file says, of the field's type.

    Raises
    ------
    ValueError
        If it breaks the rule; the message names field, value and rule.
    """
    if isinstance(value, str):
        check_word(f"{field} =", value, _TEXTS.get(field, WORD))
    elif isinstance(value, int):
        _check_number(field, value, _NUMBERS.get(field, _ANY_NUMBER))
    elif isinstance(value, float):
        if not 0.0 < value < 1e6:
            raise ValueError(f"{field} = {value!r} must be above 0 and below 1000000")
    elif isinstance(value, list):
        for item in value:
            if not isinstance(item, str):
                raise ValueError(f"{field} = {value!r} must be a list of strings")
            check_word(f"{field} has", item, _TEXTS.get(field, WORD))


def check_word(what: str, text: str, rule: _Text = WORD) -> None:
    """Check a string.

    Parameters
    ----------
    what : str
        What it is, for the message.
    text : str
        The string.
    rule : _Text
        By default that of a name: of a file, a folder, a program's machine.

    Raises
    ------
    ValueError
        If it is none.
    """
    if not re.fullmatch(rule.pattern, text) or not text.isprintable():
        raise ValueError(f"{what} {text!r} {rule.rule}")


def _check_number(field: str, value: int, rule: _Number) -> None:
    if rule.low <= value <= rule.high and value % rule.multiple == 0:
        return
    multiple = f" and a multiple of {rule.multiple}" if rule.multiple > 1 else ""
    raise ValueError(f"{field} = {value} must be {rule.low}..{rule.high}{multiple}")
