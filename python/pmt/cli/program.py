"""The program: commands, exit codes, one line for each error, and the signals that end it."""

from __future__ import annotations

import argparse
import os
import signal
import stat
import sys
import threading
import warnings
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from pmt import __version__
from pmt._util.checks import FileProblems, OptionError, OptionWarning
from pmt.cli import (
    align,
    bench,
    convert,
    corrupt,
    download,
    export,
    info,
    monitor,
    predict,
    profile,
    quantize,
    report,
    reproduce,
    scheme,
    select,
    show,
    statistics,
    study,
    sweep,
    train,
)
from pmt.cli import eval as eval_command
from pmt.cli.arguments import flag, named_plugins
from pmt.cli.basic_options import BASIC, LONG
from pmt.cli.output import (
    EXIT_BAD_INPUT,
    EXIT_INTERRUPTED,
    EXIT_OUTPUT_CLOSED,
    Output,
    complain,
    prepare_streams,
    put,
)
from pmt.cli.output_files import check_output_files
from pmt.cli.parser import Parser
from pmt.methods import load_plugins

__all__ = ["describe", "main", "termination_interrupts"]

_SAVES_MEMORY = {
    "batch": "a smaller --batch",
    "queries": "fewer --queries",
    "threads": "fewer --threads",
    "limit": "a --limit of images",
    "jobs": "fewer --jobs",
}

# In the order that help lists them; a module has the name of its command.
_COMMANDS = (
    info,
    profile,
    eval_command,
    predict,
    train,
    align,
    statistics,
    select,
    scheme,
    sweep,
    report,
    reproduce,
    convert,
    export,
    monitor,
    corrupt,
    show,
    study,
    bench,
    quantize,
    download,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``pmt``.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        Exit code: 0 on success, 1 if a command found something wrong, 2 for bad input, 130 after
        Ctrl-C, SIGTERM or SIGHUP, 141 if the reader of the output went away. With the environment
        variable ``PMT_TRACEBACK=1`` errors are raised.
    """
    closed = prepare_streams()
    try:
        return _run(argv, closed)
    except BrokenPipeError:
        return EXIT_OUTPUT_CLOSED


def _run(argv: Sequence[str] | None, closed: Sequence[str]) -> int:
    arguments = argparse.Namespace()
    try:
        load_plugins(named_plugins(sys.argv[1:] if argv is None else argv))
        arguments = _parser().parse_args(argv)
        if arguments.json == "-" and "stdout" in closed:
            raise ValueError("--json -: standard output is closed; give a file")
        check_output_files(arguments)
        output = Output(arguments.json)
        with termination_interrupts(), _warnings_as_lines():
            code: int = arguments.run(arguments, output)
        put("", sys.stdout)  # what a library may have printed
        return code
    except SystemExit as stop:  # argparse has printed help, the version or an error
        return int(stop.code or 0)
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        complain("interrupted")
        return EXIT_INTERRUPTED
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        if os.environ.get("PMT_TRACEBACK") == "1":
            raise
        for line in _lines(error, arguments):
            complain(f"error: {line}")
        return EXIT_BAD_INPUT


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print a warning as errors are printed, each once, options by their flags."""
    shown: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("always", OptionWarning)

        def show(message: Warning | str, *where: Any, **more: Any) -> None:
            text = message.named(flag) if isinstance(message, OptionWarning) else str(message)
            if text not in shown:
                shown.add(text)
                complain(f"warning: {' '.join(text.split())}")

        warnings.showwarning = show
        yield


def _lines(error: BaseException, arguments: argparse.Namespace) -> list[str]:
    """Return an error as lines of text: several where a file has several problems."""
    if isinstance(error, FileProblems):
        return [" ".join(line.split()) for line in error.lines()]
    return [describe(error, vars(arguments))]


def describe(error: BaseException, arguments: Container[str] = ()) -> str:
    """Return an error as one line of text, with remedies among the arguments of the command."""
    if isinstance(error, MemoryError):
        remedies = [text for name, text in _SAVES_MEMORY.items() if name in arguments]
        return f"not enough memory{'; use ' if remedies else ''}{' or '.join(remedies)}"
    if isinstance(error, OptionError):
        text = error.named(flag)
    elif isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    else:
        text = str(error) or type(error).__name__
    return " ".join(text.split())


def _parser() -> Parser:
    parser = Parser(
        prog="pmt",
        usage="pmt COMMAND [arguments]",
        description="Train int8 networks without back-propagation.",
        epilog="`pmt COMMAND --help` explains a command.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"pmt {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", prog="pmt", required=True)
    for command in _COMMANDS:
        name = command.__name__.rpartition(".")[2]
        sub = commands.add_parser(
            name,
            usage=command.USAGE,
            help=command.SUMMARY,
            description=command.DESCRIPTION,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            basic=BASIC if name in LONG else None,
        )
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    return parser


_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def termination_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt on either: training leaves a checkpoint, a sweep ends its workers.

    Where somebody else handles a signal, or ignores it as nohup does, or outside of the main
    thread, nothing changes. A command that was started with Ctrl-C ignored keeps ignoring it:
    Python installs no handler then.
    """
    ours = threading.current_thread() is threading.main_thread()
    taken = [n for n in _SIGNALS if ours and signal.getsignal(n) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    for descriptor in (1, 2):
        _leave_closed_terminal(descriptor)
    raise KeyboardInterrupt


def _leave_closed_terminal(descriptor: int) -> None:
    """Let what is still written to a terminal that is gone go nowhere, instead of failing."""
    with suppress(OSError):
        is_device = stat.S_ISCHR(os.fstat(descriptor).st_mode)
        if is_device and not os.isatty(descriptor):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
