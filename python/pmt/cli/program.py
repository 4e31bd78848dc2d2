"""The program: commands, exit codes, one line for each error, and the signals that end it."""

import argparse
import errno
import os
import signal
import stat
import sys
import textwrap
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType, MappingProxyType
from typing import Any, NoReturn

from pmt import __version__
from pmt._util.places import check_working_folder
from pmt._util.text import did_you_mean, nearest
from pmt.cli import (
    align,
    convert,
    corrupt,
    demo,
    doctor,
    download,
    export,
    info,
    monitor,
    predict,
    profile,
    quantize,
    scheme,
    select,
    show,
    statistics,
    stream,
    train,
)
from pmt.cli import eval as eval_command
from pmt.cli.arguments import named_plugins
from pmt.cli.output import (
    EXIT_BAD_INPUT,
    EXIT_INTERRUPTED,
    EXIT_OUTPUT_CLOSED,
    Output,
    check_output_files,
    complain,
    prepare_streams,
    put,
)
from pmt.cli.typed_names import after_argument, argument_names, as_typed, typed_name
from pmt.errors import FileError, OptionError, OptionWarning, TableError
from pmt.methods import load_plugins

_SAVES_MEMORY = {
    "batch": "a smaller --batch",
    "queries": "fewer --queries",
    "threads": "fewer --threads",
    "limit": "a --limit of images",
    "jobs": "fewer --jobs",
}

# In the order that help lists them. A module has the name of its command, the texts `USAGE`,
# `SUMMARY` and `DESCRIPTION`, and the functions `add_arguments` and `run`.
COMMANDS = (
    demo,
    info,
    profile,
    eval_command,
    predict,
    train,
    align,
    statistics,
    select,
    scheme,
    convert,
    export,
    monitor,
    stream,
    corrupt,
    show,
    quantize,
    download,
    doctor,
)


# Commands that take every option of the training, and the options that their help shows;
# ``--help-all`` shows the others too.
LONG = ("train", "select", "export")
BASIC = (
    *("--data", "--corruption", "--severity", "--classes", "--layers", "--block", "--method"),
    *("--epochs", "--macs", "--batch", "--queries", "--learning-rate", "--seed", "--keep-best"),
    *("--out", "--resume", "--threads", "--json", "--help", "--help-all"),
    *("--blocks", "--criterion", "--seeds", "--images", "--held-out", "--plot"),
    *("--learner", "--samples"),
    *("--target", "--format", "--steps", "--select", "--force", "--from"),
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
        plugins = named_plugins(sys.argv[1:] if argv is None else argv)
        arguments.plugin, arguments.argument_names = plugins, {"plugin": "--plugin"}
        load_plugins(plugins)
        arguments = make_parser().parse_args(argv)
        if arguments.json == "-" and "stdout" in closed:
            raise ValueError("--json -: standard output is closed; give a file")
        check_working_folder()
        check_output_files(arguments)
        output = Output(arguments.json)
        with termination_interrupts(), _warnings_as_lines(arguments):
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
        if isinstance(error, TableError):
            with suppress(OSError):
                put(f"\n{error.table}\n", sys.stderr)
        return EXIT_BAD_INPUT


@contextmanager
def _warnings_as_lines(arguments: argparse.Namespace) -> Iterator[None]:
    """Print a warning as errors are printed, each once, options by their flags."""
    shown: set[str] = set()
    named = partial(typed_name, vars(arguments))
    with warnings.catch_warnings():
        warnings.simplefilter("always", OptionWarning)

        def show(message: Warning | str, *where: Any, **more: Any) -> None:
            text = str(message)
            if isinstance(message, OptionWarning):
                text = message.named(named)
            text = " ".join(as_typed(text, vars(arguments)).split())
            if text not in shown:
                shown.add(text)
                complain(f"warning: {text}")

        warnings.showwarning = show
        yield


def _lines(error: BaseException, arguments: argparse.Namespace) -> list[str]:
    """Return an error as lines of text: several where a file has several problems."""
    if isinstance(error, FileError):
        return [" ".join(line.split()) for line in error.lines()]
    return [describe(error, vars(arguments))]


# Reasons of the system that name no remedy, with one.
_REASONS = {
    errno.EISDIR: "is a folder; name a file",
    errno.ENOTDIR: "a part of the path is a file, not a folder; name another place",
}


def describe(error: BaseException, arguments: Mapping[str, Any] = MappingProxyType({})) -> str:
    """Return an error as one line of text, with remedies among the arguments of the command."""
    if isinstance(error, MemoryError):
        remedies = [text for name, text in _SAVES_MEMORY.items() if name in arguments]
        return f"not enough memory{'; use ' if remedies else ''}{' or '.join(remedies)}"
    if isinstance(error, OptionError):
        text = error.named(partial(typed_name, arguments))
    elif isinstance(error, TableError):
        text = error.message
    elif isinstance(error, OSError) and error.strerror:
        reason = _REASONS.get(error.errno or 0, error.strerror)
        text = f"{error.filename}: {reason}" if error.filename else error.strerror
    else:
        text = str(error) or type(error).__name__
    typed = as_typed(text, arguments)
    if isinstance(error, OSError):
        typed = after_argument(typed, arguments)
    return " ".join(typed.split())


class Parser(argparse.ArgumentParser):
    """An argument parser of one-line errors; ``--help`` shows the flags in ``basic``, if any."""

    def __init__(self, *args: Any, basic: Sequence[str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._basic = basic
        if basic is not None:
            self.add_argument(
                "--help-all", action=_HelpAll, nargs=0, help="show every option and exit"
            )

    def error(self, message: str) -> NoReturn:
        """Print the error and, unless it has a remedy, where help is; exit with 2."""
        where = "" if message.endswith("?") else f"; see `{self.prog} --help`"
        self._refuse(f"{message}{where}")

    def _refuse(self, message: str) -> NoReturn:
        complain(f"error: {message}")
        raise SystemExit(EXIT_BAD_INPUT)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; an unknown flag is refused first, by its name, and the rest by the command."""
        self._refuse_unknown_flags(sys.argv[1:] if args is None else args)
        found, left = super().parse_known_args(args, namespace)
        if left and not self._subparsers:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return found, left

    def _refuse_unknown_flags(self, args: Sequence[str]) -> None:
        known = [name for action in self._actions for name in action.option_strings]
        for argument in args:
            if argument == "--" or (self._subparsers and not argument.startswith("-")):
                return  # after it stand names of files, or a command with flags of its own
            name = argument.partition("=")[0]
            if not name.startswith("--") or " " in name or name in known:
                continue
            near = nearest(name, (flag for flag in known if flag.startswith("--")))
            everything = "--help" if self._basic is None else "--help-all"
            remedy = f"did you mean {near}?" if near else f"see `{self.prog} {everything}`"
            self._refuse(f"{name} is unknown; {remedy}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a command that is none."""
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(
                action, f"{value!r} is unknown{did_you_mean(value, action.choices)}"
            )

    def format_help(self) -> str:
        """Return the help, of a long command with only its basic options."""
        with self._shortened():
            return super().format_help()

    @contextmanager
    def _shortened(self) -> Iterator[None]:
        """Hide all but the basic options, and say in the end how many there are."""
        basic = self._basic
        flags = [] if basic is None else [a for a in self._actions if a.option_strings]
        hidden = [a for a in flags if not set(a.option_strings) & set(basic or ())]
        texts, epilog = [action.help for action in hidden], self.epilog
        for action in hidden:
            action.help = argparse.SUPPRESS
        if hidden:
            self.epilog = f"`{self.prog} --help-all` shows {len(hidden)} more options."
        try:
            yield
        finally:
            self.epilog = epilog
            for action, text in zip(hidden, texts, strict=True):
                action.help = text

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help or the version; argparse hides that it could not be written."""
        put(message, file or sys.stderr)


class _HelpAll(argparse.Action):
    """Prints the help with every option."""

    def __call__(self, parser: argparse.ArgumentParser, *others: object) -> None:
        put(argparse.ArgumentParser.format_help(parser), sys.stdout)
        parser.exit()


class Help(argparse.HelpFormatter):
    """Help as wide as the terminal: paragraphs are filled, blocks that are indented stay."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = text.split("\n\n")
        for i, part in enumerate(parts):
            if not any(line.startswith(" ") for line in part.splitlines()):
                parts[i] = textwrap.fill(part, width, break_on_hyphens=False)
        return "\n\n".join(parts)


def make_parser() -> Parser:
    """Return the parser of the program and of all its commands."""
    parser = Parser(
        prog="pmt",
        usage="pmt COMMAND [arguments]",
        description="Train int8 networks without back-propagation.",
        epilog="`pmt COMMAND --help` explains a command.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"pmt {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", prog="pmt", required=True)
    for command in COMMANDS:
        name = command.__name__.rpartition(".")[2]
        sub = commands.add_parser(
            name,
            usage=command.USAGE,
            help=command.SUMMARY,
            description=command.DESCRIPTION,
            allow_abbrev=False,
            formatter_class=Help,
            basic=BASIC if name in LONG else None,
        )
        command.add_arguments(sub)
        sub.add_argument(
            "--json",
            metavar="PATH",
            help="write the figures as JSON; '-' writes them to standard output, and the text to "
            "standard error",
        )
        sub.set_defaults(run=command.run, argument_names=argument_names(sub))
    return parser


_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def termination_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt on either: training leaves a checkpoint.

    Where somebody else handles a signal, or ignores it as nohup does, or outside of the main
    thread, nothing changes. A command that was started with Ctrl-C ignored keeps ignoring it:
    Python installs no handler then.
    """
    ours = threading.current_thread() is threading.main_thread()
    taken = [n for n in _SIGNALS if ours and signal.getsignal(n) is signal.SIG_DFL]
    try:
        for number in taken:
            signal.signal(number, _interrupt)
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    for descriptor in (1, 2):
        _leave_closed_terminal(descriptor)
    raise KeyboardInterrupt


def _leave_closed_terminal(descriptor: int) -> None:
    """Discard output to a terminal that is gone, instead of failing."""
    with suppress(OSError):
        is_device = stat.S_ISCHR(os.fstat(descriptor).st_mode)
        if is_device and not os.isatty(descriptor):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
