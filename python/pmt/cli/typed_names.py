"""Names of arguments in errors, as they stand on the command line.

Functions of Python say ``path='net.pmt'`` and ``method='mezo'`` where a command has ``MODEL`` and
``--method``.
"""

import argparse
import ast
import os
import re
from collections.abc import Mapping
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from pmt._util.text import split_names

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_VALUE = rf"""{_QUOTED}|-?[0-9][0-9.e+-]*|-?nan|-?inf|True|False|None"""
_BEGIN = r"(?<![\w./'\"=-])(?<!--set )"  # of an option that stands as it was typed
_NAMED = re.compile(rf"{_BEGIN}([a-z_]+)=({_VALUE})(?=[\s:;,]|$)")
_OPTIONS = re.compile(r"^options \[(.*?)\] are unknown")
_SWITCH = re.compile(r"--([a-z-]+)=(True|False)\b")  # flags without a value
# A parameter of two words or more within a sentence, maybe with the numbers of a sequence.
_WITHIN = re.compile(rf"{_BEGIN}([a-z]+(?:_[a-z]+)+)(?![\w/'\"]|\.\w)(?:=\[([^]]*)\])?")
# A parameter, or a function, with the argument or the command that it is.
_BOTH = re.compile(
    r"([a-z_]+)(=\w+)? \(--([a-z-]+)( [A-Za-z]+)?\)|pmt\.\w+\([\w, ]*\) \((pmt \w+)\)"
)
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
    """Return a message with the names of Python's parameters as those of the command's arguments.

    A parameter that is no argument keeps its name, as does a word that has another value than the
    argument.
    """
    names: Mapping[str, str] = given.get("argument_names") or {}

    def renamed(found: re.Match[str]) -> str:
        name, value = found.groups()
        if (plain := _FLAGS.get(f"{name}={value}")) and plain in names.values():
            return plain
        matching = [
            place for place in (name, *names) if _is(given.get(place), value, place == name)
        ]
        if not matching and name in names and given.get(name) is None:
            matching = [name]  # of a default
        if not matching:
            return found[0]
        typed = names[matching[0]]
        return f"{typed}{'=' if typed.startswith('-') else ' '}{value}"

    def listed(found: re.Match[str]) -> str:
        return ", ".join(typed_name(given, name.strip(" '")) for name in found[1].split(","))

    def within(found: re.Match[str]) -> str:
        name, numbers = found.groups()
        if name not in names:
            return found[0]
        return names[name] + ("" if numbers is None else "=" + numbers.replace(" ", ""))

    def alone(found: re.Match[str]) -> str:
        name, value, typed, word, command = found.groups()
        if command:
            return f"`{command}`"
        return f"--{typed}{value or word or ''}" if flag(name) == f"--{typed}" else found[0]

    def switched(found: re.Match[str]) -> str:
        return f"--{'' if found[2] == 'True' else 'no-'}{found[1]}"

    text = _OPTIONS.sub(lambda found: f"{listed(found)}: unknown", message)
    text = _NAMED.sub(renamed, _BOTH.sub(alone, text))
    # Names of files stand as they are, and what is said of --set is in its words.
    own = re.compile("|".join([_QUOTED, *map(re.escape, _typed_texts(given))]))
    if "--set " not in text:
        kept = own.findall(text)
        parts = [_WITHIN.sub(within, part) for part in own.split(text)]
        text = "".join(chain.from_iterable(zip_longest(parts, kept, fillvalue="")))
    return _SWITCH.sub(switched, text)


def _typed_texts(given: Mapping[str, Any]) -> list[str]:
    """Return the texts with underscores among the arguments, as they are and as paths."""
    values = [
        one for value in given.values() for one in (value if isinstance(value, list) else [value])
    ]
    texts = {value for value in values if isinstance(value, str) and "_" in value}
    # The longest first, as a path holds the text.
    return sorted({shown for text in texts for shown in _shown(text)}, key=len, reverse=True)


def _shown(path: str) -> tuple[str, ...]:
    """Return a path as it is, and from the root unless the working folder is gone."""
    try:
        return path, os.path.abspath(path)
    except OSError:
        return (path,)


def after_argument(text: str, given: Mapping[str, Any]) -> str:
    """Return an error that begins with a file after the argument that names the file."""
    for name, typed in (given.get("argument_names") or {}).items():
        value = given.get(name)
        for path in value if isinstance(value, list) else [value]:
            if not isinstance(path, str) or not path:
                continue
            for quoted in (str, repr):
                for shown in map(quoted, _shown(path)):
                    after = (":", " is ") if quoted is str else (" ",)
                    if text.startswith(tuple(shown + one for one in after)):
                        return f"{typed} {quoted(path)}{text.removeprefix(shown)}"
    return text


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
