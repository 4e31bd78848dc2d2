"""The models and images that a command line names."""

from __future__ import annotations

import argparse
from dataclasses import replace

import pmt
from pmt import corruptions, datasets
from pmt.cli.arguments import checked_constants, integer
from pmt.corruptions import SEVERITIES, names
from pmt.datasets import Dataset
from pmt.datasets.picture import Fit, resized
from pmt.model import Model
from pmt.protocol.data_source import BUNDLED, DataSource, data_path

__all__ = [
    "add_corruption_seed",
    "add_size",
    "add_split",
    "chosen_corruptions",
    "chosen_severities",
    "data_source",
    "load_model",
    "read_clean",
]


def data_source(arguments: argparse.Namespace) -> DataSource:
    """Return the data that the command line names; its options are checked before any file is."""
    name = arguments.corruption
    labels = "coarse" if arguments.coarse_labels else "fine"
    if name is None:
        if arguments.severity is not None:
            raise ValueError(f"--severity {arguments.severity} needs --corruption NAME")
        if arguments.constants is not None:
            raise ValueError(f"--constants {arguments.constants} needs --corruption NAME")
        return DataSource(data_path(arguments.data), labels=labels)
    if name not in corruptions.names():
        known = ", ".join(corruptions.names())
        raise ValueError(f"--corruption {name!r} is unknown; choose one of {known}")
    severity = 5 if arguments.severity is None else arguments.severity
    if severity not in corruptions.SEVERITIES:
        raise ValueError(f"--severity {severity} must be 1..5")
    seed, constants = arguments.corruption_seed or 0, checked_constants(arguments)
    return DataSource(data_path(arguments.data), name, severity, seed, labels, constants)


def load_model(arguments: argparse.Namespace) -> Model:
    """Load the model that the command line names."""
    options = {"classes": arguments.classes, "resolution": arguments.resolution}
    return pmt.load(arguments.model, **{k: v for k, v in options.items() if v is not None})


def chosen_corruptions(option: str, text: str) -> tuple[str, ...]:
    """Return the corruptions of ``all`` or ``fog,contrast``, each once, in the order given.

    Raises
    ------
    ValueError
        Unknown names, all of them in one message.
    """
    if text == "all":
        return names()
    chosen = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    unknown = [repr(name) for name in chosen if name not in names()]
    if unknown:
        raise ValueError(
            f"{option} {', '.join(unknown)} is unknown; choose all, or some of {', '.join(names())}"
        )
    return chosen


def chosen_severities(option: str, text: str) -> tuple[int, ...]:
    """Return the severities of ``1,3,5``, each once, in the order given.

    Raises
    ------
    ValueError
        Anything but 1 to 5, separated by commas.
    """
    known = {str(severity): severity for severity in SEVERITIES}
    parts = [part.strip() for part in text.split(",")]
    wrong = [repr(part) for part in parts if part not in known]
    if wrong:
        raise ValueError(f"{option} {', '.join(wrong)}: give some of 1,2,3,4,5")
    return tuple(dict.fromkeys(known[part] for part in parts))


def add_split(parser: argparse.ArgumentParser, default: str = "test") -> None:
    """Add the split to read."""
    parser.add_argument(
        "--split", metavar="NAME", default=default, help=f"train or test (default: {default})"
    )


def add_corruption_seed(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the seed of the corruptions; `what` completes its help."""
    parser.add_argument(
        "--seed",
        metavar="S",
        type=integer(0, 2**31),
        default=0,
        help=f"seed of the corruptions{what} (default: 0)",
    )


def add_size(parser: argparse.ArgumentParser, when: str) -> None:
    """Add the size that images are brought to, and when."""
    parser.add_argument(
        "--size",
        metavar="PX",
        type=integer(1, 4096),
        help=f"resize the images to PX x PX {when} (default: keep their size)",
    )


def read_clean(arguments: argparse.Namespace) -> Dataset:
    """Read the split that the command line names."""
    if arguments.data == BUNDLED:
        data = datasets.bundled(arguments.split)
        if arguments.size is None:
            return data
        return replace(data, images=resized(data.images, Fit((arguments.size, arguments.size))))
    return datasets.load(
        arguments.data,
        split=arguments.split,
        size=arguments.size,
        labels="coarse" if arguments.coarse_labels else "fine",
    )
