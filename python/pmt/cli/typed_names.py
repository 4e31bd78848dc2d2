"""Names of arguments in errors, as they stand on the command line.

Functions of Python say ``path='net.pmt'`` and ``method='mezo'`` where a command has ``MODEL`` and
``--method``.
"""

import argparse
import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pmt._util.text import split_names

_VALUE = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?[0-9][0-9.e+-]*|-?nan|-?inf|True|False|None"""
_NAMED = re.compile(rf"(^|: )([a-z_]+)=({_VALUE})(?=[\s:;,]|$)")
_OPTIONS = re.compile(r"^options \[(.*?)\] are unknown")
_SWITCH = re.compile(r"--([a-z-]+)=(True|False)\b")  # flags without a value
# Values of Python's parameters that are flags without a value.
_FLAGS = {"labels='coarse'": "--coarse-labels"}
# Parameters that commands call otherwise.
_OTHER_NAMES = {
    "keeps_activations": "--keep-activations",
    "keeps_confirmed": "--keep-confirmed",
    "like": "--as",
    "lock": "--from",
}


def flag(name: str) -> str:
    """Return the argument of an option."""
    return _OTHER_NAMES.get(name, f"--{name.replace('_', '-')}")


def typed_name(given: Mapping[str, Any], name: str) -> str:
    """Return an argument as the command's help calls it: ``--out``, or ``OUT`` without a flag."""
    names: Mapping[str, str] = given.get("argument_names") or {}
    return names.get(name, flag(name))


def argument_names(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Return the name of each argument of a command, by its place among the parsed ones."""
    return {
        action.dest: next(
            (text for text in action.option_strings if text.startswith("--")),
            str(action.metavar or action.dest),
        )
        for action in parser._actions
    }


def as_typed(message: str, given: Mapping[str, Any]) -> str:
    """Return an error with the names of Python's parameters as those of the command's arguments.

    A parameter that is no argument, or has another value than that, keeps its name.
    """
    names: Mapping[str, str] = given.get("argument_names") or {}

    def renamed(found: re.Match[str]) -> str:
        before, name, value = found.groups()
        if (plain := _FLAGS.get(f"{name}={value}")) and plain in names.values():
            return before + plain
        matching = [
            place for place in (name, *names) if _is(given.get(place), value, place == name)
        ]
        if not matching and name in names and given.get(name) is None:
            matching = [name]  # of a default
        if not matching:
            return found[0]
        typed = names[matching[0]]
        return f"{before}{typed}{'=' if typed.startswith('-') else ' '}{value}"

    def listed(found: re.Match[str]) -> str:
        return ", ".join(typed_name(given, name.strip(" '")) for name in found[1].split(","))

    options = _OPTIONS.sub(lambda found: f"{listed(found)}: unknown", message)
    return _SWITCH.sub(
        lambda found: f"--{'' if found[2] == 'True' else 'no-'}{found[1]}",
        _NAMED.sub(renamed, options),
    )


def _is(given: object, shown: str, is_named: bool) -> bool:
    """Whether an argument has the value that a message shows, or lists it.

    Numbers need the parameter's name.
    """
    if not isinstance(given, (str, list)) or shown[0] not in "'\"":
        return is_named and given is not None and shown in (repr(given), given)
    value = ast.literal_eval(shown)
    if isinstance(given, list):
        return value in given
    return Path(given) == Path(value) or value in split_names(given)
