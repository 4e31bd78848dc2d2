"""The command ``pmt-lab``."""

import argparse
import contextlib
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import pmt
from pmt_lab.cli import bench, report, reproduce, sweep
from pmt_lab.cli.common import EXIT_BAD_INPUT, EXIT_INTERRUPTED, Output, complain
from pmt_lab.files import described
from pmt_lab.sweep import GridError

__all__ = ["main"]

_DESCRIPTION = "Sweeps, reports, the reproduction of the paper, and speed of pmt."
_EXIT_OUTPUT_CLOSED = 141  # as after SIGPIPE


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        complain(f"error: {message}; see `{self.prog} --help`")
        raise SystemExit(EXIT_BAD_INPUT)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="pmt-lab", description=_DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"pmt-lab {pmt.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (sweep, report, reproduce, bench):
        sub = commands.add_parser(
            command.__name__.rpartition(".")[2],
            help=command.SUMMARY,
            description=command.DESCRIPTION,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(sub)
        sub.add_argument(
            "--json",
            metavar="PATH",
            help="write the figures as JSON; '-' writes them to standard output, and the text to "
            "standard error",
        )
        sub.set_defaults(run=command.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``pmt-lab`` with these arguments, by default those of the process.

    The exit code is 0 on success, 1 if runs failed, 2 for bad input, 130 after Ctrl-C, SIGTERM or
    SIGHUP, 141 if the reader of the output went away. With the environment variable
    ``PMT_TRACEBACK=1`` errors are raised.
    """
    try:
        arguments = _parser().parse_args(argv)
        with warnings.catch_warnings(), _termination_interrupts():
            warnings.showwarning = _show_warning
            code: int = arguments.run(arguments, Output(arguments.json))
        if sys.stdout is not None:  # `>&-` closes it
            sys.stdout.flush()
        return code
    except SystemExit as stop:  # argparse has printed help, the version or an error
        return int(stop.code or 0)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left in the buffer goes nowhere
        return _EXIT_OUTPUT_CLOSED
    except KeyboardInterrupt:
        complain("interrupted; the same command continues")
        return EXIT_INTERRUPTED
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        if os.environ.get("PMT_TRACEBACK") == "1":
            raise
        lines = str(error).splitlines() if isinstance(error, GridError) else [described(error)]
        for line in lines:
            complain(f"error: {line}")
        return EXIT_BAD_INPUT


_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextlib.contextmanager
def _termination_interrupts() -> Iterator[None]:
    """Let both signals raise KeyboardInterrupt: a sweep ends its workers, a run leaves checkpoints.

    One that is ignored, as nohup does, stays so.
    """
    ours = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in ours:
            signal.signal(number, signal.default_int_handler)
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    complain(f"warning: {message}")
