"""The options of the trainer as arguments: one for each field of TrainingOptions."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from typing import Any

from pmt import methods
from pmt.cli.option_arguments import add_options, converter, option_help, shown
from pmt.train.option_fields import Option, declared_options
from pmt.train.options import PRESETS, TrainingOptions, preset
from pmt.train.training_run import Trainer

__all__ = [
    "add_layers",
    "add_method",
    "add_training_options",
    "chosen_trainer",
    "given_options",
    "training_options",
]

_OPTIONS = declared_options(TrainingOptions)


def add_layers(parser: argparse.ArgumentParser) -> None:
    """Add the choice of what to train."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--layers",
        metavar=_OPTIONS["layers"].metavar,
        help=option_help(_OPTIONS["layers"]),
    )
    group.add_argument("--block", metavar="N", type=int, help="short for --layers BN")


def add_method(parser: argparse.ArgumentParser) -> None:
    """Add the choice of the method, and options of it that have no argument of their own."""
    parser.add_argument(
        "--method",
        metavar="NAME",
        help="method by name, whose options are then the defaults, instead of --preset: "
        f"{', '.join(methods.METHODS)}",
    )
    parser.add_argument(
        "--set",
        metavar="OPTION=VALUE",
        action="append",
        help="an option of the method that has no argument here; may be given several times",
    )


def add_training_options(parser: argparse.ArgumentParser, *, without: Sequence[str] = ()) -> None:
    """Add the preset and every option of the trainer; unset ones are the preset's."""
    group = parser.add_argument_group("training")
    group.add_argument(
        "--preset",
        metavar="NAME",
        help="default (what measured best) or paper (the method as printed) (default: default)",
    )
    left_out = ("layers", *without)
    add_options(group, (o for o in _OPTIONS.values() if o.name not in left_out), _papers)


def given_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options that the command line sets, by their field."""
    given = {name: getattr(arguments, name, None) for name in _OPTIONS}
    if getattr(arguments, "block", None) is not None:
        given["layers"] = f"B{arguments.block}"
    return {name: value for name, value in given.items() if value is not None}


def training_options(arguments: argparse.Namespace) -> TrainingOptions:
    """Return the preset with the options that the command line sets."""
    return preset(arguments.preset or "default", **given_options(arguments))


def chosen_trainer(arguments: argparse.Namespace) -> Trainer:
    """Return the trainer of the method or preset, with the options that the command line sets.

    Raises
    ------
    ValueError, TypeError
        If the method or an option is unknown, or an option is outside its range.
    ImportError
        If the method needs a package that is missing.
    """
    if arguments.method is not None and arguments.preset is not None:
        raise ValueError("--method and --preset exclude each other: leave one out")
    name = arguments.method or arguments.preset or "default"
    if arguments.method is None and name not in PRESETS:
        raise ValueError(f"preset={name!r} is unknown; choose one of {', '.join(PRESETS)}")
    given = {**given_options(arguments), **_set_options(name, arguments.set or [])}
    return methods.trainer(name, threads=arguments.threads, **given)


def _set_options(method: str, assignments: list[str]) -> dict[str, Any]:
    values = {}
    known = dataclasses.asdict(methods.options_of(method))
    for assignment in assignments:
        name, separator, text = assignment.partition("=")
        name = name.strip().replace("-", "_")
        if not separator or name not in known:
            raise ValueError(
                f"--set {assignment}: must be OPTION=VALUE, with an option of {method}: "
                f"{', '.join(known)}"
            )
        try:
            values[name] = _value(text.strip(), type(known[name]))
        except (ValueError, argparse.ArgumentTypeError) as error:
            raise ValueError(f"--set {assignment}: {error}") from None
    return values


def _value(text: str, kind: type) -> Any:
    if kind is not bool:
        return converter(kind)(text)
    if text not in ("yes", "no", "true", "false"):
        raise ValueError(f"{text!r} must be yes or no")
    return text in ("yes", "true")


def _papers(option: Option) -> str:
    """Return what the preset ``paper`` has instead of the default, if anything."""
    paper = PRESETS["paper"]
    return f"paper: {shown(paper[option.name])}" if option.name in paper else ""
