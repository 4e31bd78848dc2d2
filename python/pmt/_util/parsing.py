"""JSON and TOML that others wrote, read within limits and with one form of error; TOML written."""

import importlib
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pmt._util.text import printable
from pmt.errors import FileError

REMEDY = "correct it"
_MAX_DEPTH = 64
_MAX_INTEGER = 2**64
_MOST_SHOWN = 80  # characters of a line, in an error
_TOO_DEEP = f"it is nested more than {_MAX_DEPTH} deep"
_NOT_FINITE = {"Infinity": "inf", "-Infinity": "-inf", "NaN": "nan"}
_COMMENT = re.compile(r"""^((?:[^"#]|"(?:[^"\\]|\\.)*")*)#.*$""")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ENTRY = re.compile(r'([A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*")\s*=\s*(.*)')
_INTEGER = re.compile(r"[+-]?(?:0x[0-9a-fA-F_]+|[0-9][0-9_]*)")


def parse_json(
    text: str | bytes, what: object, remedy: str = REMEDY, *, finite: bool = True
) -> Any:
    """Return the value of a JSON text.

    The value has at most 64 levels, finite floats (NaN and infinities too unless `finite`),
    integers below 2^64 in size, and text that UTF-8 can hold; a ValueError tells of anything else.
    It begins with `what`, the file or the part of one, and ends with `remedy`; of a path it is a
    FileError.
    """
    return _parsed(json.loads, "JSON", text, what, remedy, finite)


def parse_toml(
    text: str | bytes, what: object, remedy: str = REMEDY, *, finite: bool = True
) -> dict[str, Any]:
    """Return the tables of a TOML text; arguments, limits and errors as :func:`parse_json`.

    Where Python has no reader of TOML (3.10 without ``tomli``), a part of it is read, see
    :func:`pmt._util.parsing.parse_plain_toml`.
    """
    tables: dict[str, Any] = _parsed(_toml_reader(), "TOML", text, what, remedy, finite)
    return tables


def _toml_reader() -> Callable[[str], dict[str, Any]]:
    for name in ("tomllib", "tomli"):
        try:
            reader: Callable[[str], dict[str, Any]] = importlib.import_module(name).loads
        except ImportError:
            continue
        return reader
    return parse_plain_toml


def _parsed(
    read: Callable[[str], Any],
    form: str,
    text: str | bytes,
    what: object,
    remedy: str,
    finite: bool,
) -> Any:
    try:
        value = read(text if isinstance(text, str) else text.decode())
        _check(value, finite)
    except UnicodeError:
        problem = "is not UTF-8 text"
    except RecursionError:
        problem = f"is not valid {form}: {_TOO_DEEP}"
    except ValueError as error:
        problem = f"is not valid {form}: {error}"
    else:
        return value
    if isinstance(what, Path):
        raise FileError(str(what), [f"{problem}; {remedy}"])
    raise ValueError(f"{what}: {problem}; {remedy}")


def _check(value: Any, finite: bool) -> None:
    """Raise ValueError or UnicodeError at values of JSON and TOML that no reader here can use."""
    left = [(value, 1)]
    while left:
        value, depth = left.pop()
        if depth > _MAX_DEPTH:
            raise ValueError(_TOO_DEEP)
        if isinstance(value, str):
            value.encode()  # "\ud800" is sound JSON
        elif isinstance(value, float) and finite and not math.isfinite(value):
            raise ValueError(f"{value} is not a finite number")
        elif isinstance(value, int) and abs(value) >= _MAX_INTEGER:
            raise ValueError("an integer has more than 64 bits")
        elif isinstance(value, dict):
            left += [(item, depth + 1) for pair in value.items() for item in pair]
        elif isinstance(value, list):
            left += [(item, depth + 1) for item in value]


def parse_plain_toml(text: str) -> dict[str, Any]:
    """Read the part of TOML that targets are written in.

    Tables of one level; integers, floats, booleans, strings in double quotes, and arrays of them on
    one line; comments.
    """
    tables: dict[str, Any] = {}
    table = tables
    for number, whole in enumerate(text.split("\n"), 1):  # TOML knows no other ends of lines
        commented = _COMMENT.match(whole)
        line = (commented[1] if commented else whole).strip()
        if not line:
            continue
        if line.startswith("["):
            if not re.fullmatch(r"\[[A-Za-z0-9_-]+\]", line):
                raise ValueError(f"line {number}: {_shown(line)} is not a table of one level")
            table = tables.setdefault(line[1:-1], {})
            if not isinstance(table, dict):
                raise ValueError(f"line {number}: {_shown(line)} is a value already")
            continue
        entry = _ENTRY.fullmatch(line)
        if not entry:
            raise ValueError(f"line {number}: {_shown(line)} is not `key = value`")
        key, value = entry.groups()
        table[_value(key, number) if key.startswith('"') else key] = _value(value, number)
    return tables


def _shown(text: str) -> str:
    return printable(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}...")


def _value(text: str, number: int) -> Any:
    if _INTEGER.fullmatch(text):
        return int(text.replace("_", ""), 0)
    if text.lstrip("+-") in ("inf", "nan"):
        return float(text)
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise ValueError(
            f"line {number}: {_shown(text)} is not a number, string in double quotes or array on "
            "one line; Python 3.11, or tomli, reads all of TOML"
        ) from None


def toml_line(key: str, value: str | int | float | bool) -> str:
    """Return ``key = value`` in TOML.

    A ValueError names what TOML cannot hold: text that is not Unicode, as a file name that is not
    UTF-8, integers of more than 64 bits, or of another type.
    """
    if not isinstance(key, str):
        raise ValueError(f"the name {key!r} of {value!r} must be text")
    if not isinstance(value, str | int | float):
        raise ValueError(f"{key}={value!r} must be text, a number, True or False")
    if isinstance(value, int) and abs(value) >= _MAX_INTEGER:
        raise ValueError(f"{key}={value} has more than 64 bits; give it as text")
    try:
        f"{key}{value}".encode()
    except UnicodeError as error:
        raise ValueError(
            f"{printable(key)}={value!r} is not UTF-8 text; rename the file"
        ) from error
    shown = _quoted(value) if isinstance(value, str) else json.dumps(value)
    name = key if _BARE_KEY.fullmatch(key) else _quoted(key)
    return f"{name} = {_NOT_FINITE.get(shown, shown)}"


def _quoted(text: str) -> str:
    """Return a string of JSON, which is one of TOML too, with all control characters escaped."""
    shown = json.dumps(text, ensure_ascii=False)
    return "".join(c if printable(c) == c else f"\\u{ord(c):04x}" for c in shown)
