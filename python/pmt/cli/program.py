"""The program: commands, exit codes, and one line for each error."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from pmt import __version__
from pmt.cli import align as align_command
from pmt.cli import bench as bench_command
from pmt.cli import convert as convert_command
from pmt.cli import corrupt as corrupt_command
from pmt.cli import download as download_command
from pmt.cli import eval as eval_command
from pmt.cli import export as export_command
from pmt.cli import info as info_command
from pmt.cli import monitor as monitor_command
from pmt.cli import profile as profile_command
from pmt.cli import quantize as quantize_command
from pmt.cli import report as report_command
from pmt.cli import scheme as scheme_command
from pmt.cli import select as select_command
from pmt.cli import show as show_command
from pmt.cli import statistics as statistics_command
from pmt.cli import study as study_command
from pmt.cli import sweep as sweep_command
from pmt.cli import train as train_command
from pmt.cli.arguments import Parser
from pmt.cli.output import Output
from pmt.cli.process import complain, prepare_streams, put, termination_interrupts

__all__ = ["main"]

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_OUTPUT_CLOSED = 141

_COMMANDS = {
    "info": info_command,
    "profile": profile_command,
    "eval": eval_command,
    "train": train_command,
    "align": align_command,
    "statistics": statistics_command,
    "select": select_command,
    "scheme": scheme_command,
    "sweep": sweep_command,
    "report": report_command,
    "convert": convert_command,
    "export": export_command,
    "monitor": monitor_command,
    "corrupt": corrupt_command,
    "show": show_command,
    "study": study_command,
    "bench": bench_command,
    "quantize": quantize_command,
    "download": download_command,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``pmt``.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        Exit code: 0 on success, 1 for what a command found wrong, 2 for bad input, 130 after
        Ctrl-C, SIGTERM or SIGHUP, 141 if the reader of the output went away. With the environment
        variable ``PMT_TRACEBACK=1`` errors are raised.
    """
    closed = prepare_streams()
    try:
        return _run(argv, closed)
    except BrokenPipeError:
        return EXIT_OUTPUT_CLOSED


def _run(argv: Sequence[str] | None, closed: Sequence[str]) -> int:
    try:
        arguments = _parser().parse_args(argv)
        if arguments.json == "-" and "stdout" in closed:
            raise ValueError("--json -: standard output is closed; give a file")
        output = Output(arguments.json)
        with termination_interrupts():
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
        complain(f"error: {describe(error)}")
        return EXIT_BAD_INPUT


def describe(error: BaseException) -> str:
    """Return an error as one line of text."""
    if isinstance(error, MemoryError):
        return "not enough memory; use a smaller --batch, fewer --queries or fewer --threads"
    if isinstance(error, OSError) and error.strerror:
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
    for name, command in _COMMANDS.items():
        sub = commands.add_parser(
            name,
            usage=command.USAGE,
            help=command.SUMMARY,
            description=command.DESCRIPTION,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    return parser
