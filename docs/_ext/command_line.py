"""The parser of `pmt` for sphinx-argparse-cli."""

from __future__ import annotations

import argparse

from pmt.cli import program

__all__ = ["parser"]


def parser() -> argparse.ArgumentParser:
    """Return the parser, with descriptions whose lines the site breaks itself."""
    made = program.make_parser()
    made.epilog = None
    (commands,) = (a for a in made._actions if isinstance(a, argparse._SubParsersAction))
    for command in commands.choices.values():
        command.description = " ".join(command.description.split())
        for action in command._actions:
            if action.metavar == "-":  # no name for an anchor
                action.metavar = "'-'"
    return made
