"""Arguments that say which images of a data set adapt, choose and test."""

from __future__ import annotations

import argparse

from pmt.cli.arguments import integer
from pmt.model import Model
from pmt.protocol import PROTOCOLS, Split, split
from pmt.protocol.data_source import DataSource

__all__ = ["add_split", "split_of"]

_IMAGES, _HELD_OUT = 1100, 100


def add_split(parser: argparse.ArgumentParser) -> None:
    """Add the protocol and its numbers."""
    group = parser.add_argument_group("split")
    group.add_argument(
        "--protocol",
        metavar="NAME",
        default="default",
        help="default: training images; paper: of each class 100 images of the test split adapt, "
        "10 choose (default: default)",
    )
    group.add_argument(
        "--images",
        metavar="N",
        type=integer(2),
        help=f"training images in all, balanced over the classes (default: {_IMAGES:,}, or all "
        "where there are fewer)",
    )
    group.add_argument(
        "--held-out",
        metavar="N",
        type=integer(0),
        help=f"how many of them are held out, to choose on (default: {_HELD_OUT})",
    )
    group.add_argument(
        "--split-seed",
        metavar="S",
        type=integer(0, 2**31),
        default=0,
        help="seed of the choice of images (default: 0)",
    )


def split_of(arguments: argparse.Namespace, source: DataSource, model: Model) -> Split:
    """Return the images that the command line names.

    Raises
    ------
    ValueError, FileNotFoundError
        As :func:`pmt.protocol.split`; or if numbers are given that the protocol fixes.
    """
    name = arguments.protocol
    if name not in PROTOCOLS:
        raise ValueError(f"--protocol {name!r} is unknown; choose one of {', '.join(PROTOCOLS)}")
    seed, test = arguments.split_seed, source.pool("test", model)
    if name == "paper":
        for option in ("images", "held_out"):
            if getattr(arguments, option) is not None:
                shown = option.replace("_", "-")
                raise ValueError(f"--{shown} is fixed by --protocol paper; leave it out")
        return split(name, None, test, seed=seed)
    train = source.pool("train", model)
    images = arguments.images if arguments.images is not None else min(_IMAGES, len(train))
    held_out = arguments.held_out if arguments.held_out is not None else _HELD_OUT
    return split(name, train, test, seed=seed, images=images, held_out=held_out)
