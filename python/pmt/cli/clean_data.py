"""The clean images that a command corrupts or shows."""

from __future__ import annotations

import argparse
from dataclasses import replace

from pmt import datasets
from pmt.cli.arguments import integer
from pmt.datasets import Dataset
from pmt.datasets.picture import Fit, resized
from pmt.protocol.data_source import BUNDLED

__all__ = ["add_corruption_seed", "add_size", "add_split", "read_clean"]


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
