"""An argument parser with errors of one line, and a short help where the whole one is long."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from pmt._util.did_you_mean import did_you_mean, nearest
from pmt.cli.output import EXIT_BAD_INPUT, complain, put

__all__ = ["Parser"]


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line.

    Parameters
    ----------
    basic : sequence of str, optional
        Flags that ``--help`` shows; ``--help-all`` shows all of them.
    """

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
        """Parse; a flag that the command does not have is refused first, and by its name.

        What else is left over is refused by the command, which can say where its help is.
        """
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

    def format_help_all(self) -> str:
        """Return the help with every option."""
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
        assert isinstance(parser, Parser)
        put(parser.format_help_all(), sys.stdout)
        parser.exit()
