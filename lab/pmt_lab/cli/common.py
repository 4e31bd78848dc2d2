"""Shared parts of the commands: output, exit codes, arguments and their checks."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tabulate import tabulate

from pmt_lab.files import did_you_mean, write_text
from pmt_lab.plots.style import pyplot

EXIT_FAILED = 1  # the command itself worked: runs failed
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130  # after Ctrl-C or SIGTERM
_SUFFIXES = (".png", ".svg", ".pdf")


def complain(message: str) -> None:
    """Print one line on standard error; that nobody can read it changes no exit code."""
    with suppress(OSError):
        print(f"pmt-lab: {' '.join(message.split())}", file=sys.stderr, flush=True)


class Output:
    """Text for people and JSON for programs.

    The JSON goes to a file, or with ``"-"`` to standard output, and the text then to standard
    error.
    """

    def __init__(self, json_path: str | None) -> None:
        self.json_path = json_path
        if json_path is not None and json_path != "-":
            check_file("--json", json_path)

    def text(self, text: str) -> None:
        """Print text at once, so that a log can be followed."""
        print(text, file=sys.stderr if self.json_path == "-" else sys.stdout, flush=True)

    def figures(self, figures: dict[str, Any]) -> None:
        """Write the figures as JSON, if they were asked for."""
        text = json.dumps(figures, indent=2) + "\n"
        if self.json_path == "-":
            sys.stdout.write(text)
        elif self.json_path is not None:
            write_text(self.json_path, text)


def check_file(argument: str, path: str) -> None:
    """Find out before the work whether a file, and no folder, can be at this path."""
    if Path(path).is_dir():
        raise IsADirectoryError(f"{argument} {path}: must be a file, and is a folder")
    if not Path(path).absolute().parent.is_dir():
        raise FileNotFoundError(f"{argument} {path}: its folder does not exist; create it")


def check_plot(path: str | None) -> None:
    """Find out before the work whether a plot, if any, can be drawn and written."""
    if path is None:
        return
    if Path(path).suffix.lower() not in _SUFFIXES:
        raise ValueError(f"--plot {path}: the suffix must be .png, .svg or .pdf")
    pyplot()
    check_file("--plot", path)


def whole(low: int) -> Callable[[str], int]:
    """Return an argument type: whole numbers from ``low``."""

    def convert(text: str) -> int:
        value = int(text) if text.lstrip("-").isdecimal() else low - 1
        if value < low:
            raise argparse.ArgumentTypeError(f"{text} must be a whole number, {low} or more")
        return value

    return convert


def one_of(names: Iterable[str]) -> Callable[[str], str]:
    """Return an argument type: one of some names."""

    def convert(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"{text!r} is unknown{did_you_mean(text, names)}")
        return text

    return convert


def listed(convert: Callable[[str], Any] = str) -> Callable[[str], tuple[Any, ...]]:
    """Return an argument type: values separated by commas, each taken once."""

    def split(text: str) -> tuple[Any, ...]:
        parts = [part.strip() for part in text.split(",")]
        found = tuple(dict.fromkeys(convert(part) for part in parts if part))
        if not found:
            raise argparse.ArgumentTypeError("must name one or more, separated by commas")
        return found

    return split


def add_number(
    parser: argparse._ActionsContainer, name: str, text: str, default: int, low: int = 1
) -> None:
    """Add a whole number, such as ``--images N``, from ``low``."""
    flag, metavar = name.split()
    text = f"{text} (default: {default})"
    parser.add_argument(flag, metavar=metavar, type=whole(low), default=default, help=text)


def add_plot(parser: argparse.ArgumentParser, drawn: str) -> None:
    """Add the file of a plot; :func:`check_plot` checks it before the work."""
    text = f"draw {drawn}: .png, .svg or .pdf; needs matplotlib"
    parser.add_argument("--plot", metavar="FILE", help=text)


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add processes and the cluster."""
    text = "processes of one thread each, 0 = one per CPU; 1 = this process with all its threads"
    add_number(parser, "--jobs N", text, 0, low=0)
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="run on the Dask cluster of this scheduler, for example tcp://10.0.0.1:8786, whose "
        "workers see the runs, the model and the data under the same paths",
    )


def check_workers(arguments: argparse.Namespace) -> None:
    """Refuse processes together with a cluster."""
    if arguments.dask is not None and arguments.jobs:
        raise ValueError(f"--jobs {arguments.jobs}: the cluster of --dask has its own workers")


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], left: Iterable[str] = ()) -> str:
    """Lay out text in columns, aligned to the right but for those that `left` names."""
    sides = ["left" if title in left else "right" for title in titles]
    text = tabulate(rows, titles, "plain", disable_numparse=True, colalign=sides)
    return "\n".join(line.rstrip() for line in text.splitlines())
