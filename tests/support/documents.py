"""Examples of the documents, run as a reader runs them, and what the page says they print.

A console block begins with a prompt, ``$ ``; under a command stands what it prints, where ``...``
stands for any lines. A Python block prints what the plain block right behind it holds.
"""

import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile, zip_longest
from pathlib import Path

from firmware_tools import EMULATOR, make, need_firmware_tools

from pmt.cli import main

ROOT = Path(__file__).parents[2]
SKIP = "..."
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Times: a column at the end of a line, behind a speed in the table of `pmt corrupt`; and numbers
# with their unit.
_VARIES = re.compile(
    r"^(\w+) +[\d,]+ +\d+\.\d$| +\d+\.\d$|\b[\d,.]+ (?:ms|s|min|h)\b(?: \d\d (?:s|min)\b)?",
    re.MULTILINE,
)
# Flash that is linked, which is the compiler's: the fifth figure of a method that fits.
_LINKED = re.compile(r"^(\w+(?: +[\d,]+\.\d){4}) +[\d,]+\.\d(?=  fits)", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """Commands or a program to run, and where in its page the output stands."""

    source: str
    is_python: bool
    start: int
    end: int


def examples(page: Path) -> list[Example]:
    """The commands and programs of a page whose output it shows, and the commands before them."""
    text = page.read_text()
    found = []
    blocks = list(_FENCED.finditer(text))
    for block, behind in zip_longest(blocks, blocks[1:]):
        if block[2].startswith("$ "):
            found += _commands(block[2], block.start(2))
        elif block[1] == "python" and behind is not None and _stands_behind(text, block, behind):
            found.append(Example(block[2], True, behind.start(2), behind.end(2)))
    return found


def _stands_behind(text: str, block: re.Match[str], behind: re.Match[str]) -> bool:
    adjacent = not text[block.end() : behind.start()].strip()
    return adjacent and "print(" in block[2] and not behind[1]


def _commands(block: str, offset: int) -> list[Example]:
    commands = list(re.finditer(r"^\$ ((?:.*\\\n)*.*)\n", block, re.MULTILINE))
    ends = [*(command.start() for command in commands[1:]), len(block)]
    found = []
    for command, end in zip(commands, ends, strict=True):
        shown = block[command.end() : end].rstrip("\n")
        source = command[1].replace("\\\n", " ")
        start = command.end()
        found.append(Example(source, False, offset + start, offset + start + len(shown)))
    return found


def check_page(page: Path, printed_so_far: Callable[[], str]) -> None:
    """Run the examples of a page in order, in the working folder, and compare what they print.

    ``printed_so_far`` returns what this process printed since it was last called. With
    PMT_UPDATE_GOLDEN=1 the page is written instead.
    """
    text = page.read_text()
    updated, copied = "", 0
    for example in examples(page):
        shown = text[example.start : example.end].rstrip("\n")
        printed = run(example, printed_so_far).rstrip("\n")
        new = _shortened(shown.splitlines(), printed.splitlines()) if shown else ""
        if os.environ.get("PMT_UPDATE_GOLDEN") != "1":
            assert masked(shown) == masked(new), example.source
        end = example.end - (example.is_python and len("\n"))
        updated += text[copied : example.start] + new
        copied = end
    if os.environ.get("PMT_UPDATE_GOLDEN") == "1":
        page.write_text(updated + text[copied:])


def run(example: Example, printed_so_far: Callable[[], str]) -> str:
    """Return what a command or a program prints."""
    if example.is_python:
        exec(example.source, {})
        return printed_so_far()
    command, *arguments = shlex.split(example.source)
    if command == "pmt":
        assert main(arguments) == 0, printed_so_far()
        return printed_so_far()
    assert command == "make", f"tests know how to run pmt and make, not {example.source!r}"
    need_firmware_tools(EMULATOR, "make")
    assert arguments[0] == "-C"
    return make(Path(arguments[1]), *arguments[2:]).stdout


def masked(text: str) -> str:
    """A text without its times and speeds, and the flash of a compiler."""
    return _LINKED.sub(r"\1 #", _VARIES.sub(r"\1 #", text))


def _shortened(shown: Sequence[str], printed: Sequence[str]) -> str:
    """The lines of the output that a page shows: all, or parts of the lengths that it has.

    A part behind ``...`` begins at the line that begins most like its first one.
    """
    if SKIP not in (line.strip() for line in shown):
        return "\n".join(printed)
    left = list(printed)
    lines: list[str] = []
    for before, line in zip(["", *shown], shown, strict=False):
        if line.strip() == SKIP:
            lines.append(line)
            continue
        if before.strip() == SKIP and left:
            del left[: _most_alike(line, left)]
        lines += left[:1]
        del left[:1]
    return "\n".join(lines if shown[-1].strip() == SKIP else [*lines, *left])


def _most_alike(line: str, lines: Sequence[str]) -> int:
    return max(range(len(lines)), key=lambda at: (_alike(line, lines[at]), -at))


def _alike(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
