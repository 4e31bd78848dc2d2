"""Arguments that commands share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from pmt import corruptions
from pmt.cli.streams import complain, put
from pmt.corruptions.constants import CONSTANTS
from pmt.model.loading import BUNDLED_MODELS

__all__ = [
    "DATA_HELP",
    "Parser",
    "add_coarse_labels",
    "add_constants",
    "add_data",
    "add_json",
    "add_model",
    "add_threads",
    "checked_constants",
    "integer",
]


DATA_HELP = (
    "folder of CIFAR-10 or CIFAR-100 (python or binary), of MNIST-like idx files, of train.npz and "
    "test.npz, of images (train/CLASS/*.png), the official files of Stanford Cars, CUB-200-2011, "
    "Flowers-102, Food-101, Oxford-IIIT Pets or Visual Wake Words, one .npz file, the name of a "
    "data set fetched by `pmt download`, or the word 'bundled'"
)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print the error and where help is; exit with 2."""
        complain(f"error: {message}; see `{self.prog} --help`")
        raise SystemExit(2)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help or the version; argparse hides that it could not be written."""
        put(message, file or sys.stderr)


def integer(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return an argument type: whole numbers from ``low`` to ``high`` (or without end)."""
    rule = f"{low} or more" if high is None else f"{low}..{high}"

    def convert(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} must be a whole number, {rule}") from None
        if value < low or (high is not None and value > high):
            raise argparse.ArgumentTypeError(f"{text} must be {rule}")
        return value

    return convert


def add_model(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add the model and the options of its importer."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        nargs=None if required else "?",
        help=".pmt, .tflite (full-integer), .onnx (int8, QDQ) or .pkl (tiny-training) file, run "
        f"folder, or the name of a bundled model: {', '.join(BUNDLED_MODELS)}",
    )
    group = parser.add_argument_group("import of a .pkl")
    group.add_argument(
        "--classes",
        metavar="N",
        type=integer(2, 65536),
        help="replace the classifier by a new one of N classes (default: keep it)",
    )
    group.add_argument(
        "--resolution",
        metavar="N",
        type=integer(32, 512),
        help="height and width of the input in pixels (default: 128)",
    )


def add_data(
    parser: argparse.ArgumentParser,
    *,
    required: bool,
    seed_names: Sequence[str] = ("--corruption-seed",),
) -> None:
    """Add the data set and its corruption."""
    group = parser.add_argument_group("data")
    group.add_argument(
        "--data",
        metavar="DIR",
        required=required,
        help=f"{DATA_HELP}. Images of another size than the model's input are resized",
    )
    add_coarse_labels(group)
    group.add_argument(
        "--corruption",
        metavar="NAME",
        help=f"corrupt the images: {', '.join(corruptions.names())} (default: none). Where DIR is "
        "or holds a CIFAR-10-C folder, its arrays are the corrupted test images",
    )
    group.add_argument(
        "--severity",
        metavar="S",
        type=int,
        help="severity of the corruption, 1..5 (default: 5)",
    )
    add_constants(group)
    group.add_argument(
        *seed_names,
        metavar="S",
        dest="corruption_seed",
        type=integer(0, 2**31),
        help="seed of the corruption: the train split is corrupted with S, the test split with "
        "S + 1 (default: 0)",
    )


def add_coarse_labels(parser: argparse._ActionsContainer) -> None:
    """Add the choice between the labels of CIFAR-100."""
    parser.add_argument(
        "--coarse-labels",
        action="store_true",
        default=None,
        help="the 20 superclasses of CIFAR-100 as labels (default: its 100 classes)",
    )


def add_constants(parser: argparse._ActionsContainer) -> None:
    """Add the choice between the constants that were published."""
    parser.add_argument(
        "--constants",
        metavar="NAME",
        help="constants of the corruptions: cifar10, made for images of 32x32 pixels, or imagenet, "
        "stronger and made for 224x224 (default: cifar10)",
    )


def checked_constants(arguments: argparse.Namespace) -> str:
    """Return the constants that the command line names."""
    chosen: str | None = arguments.constants
    if chosen is not None and chosen not in CONSTANTS:
        raise ValueError(f"--constants {chosen!r} is unknown; choose one of {', '.join(CONSTANTS)}")
    return chosen or "cifar10"


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Add the number of threads."""
    parser.add_argument(
        "--threads",
        metavar="T",
        type=integer(0, 1024),
        default=0,
        help="threads to use, 0 = all; the result does not depend on it (default: 0)",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the JSON file."""
    parser.add_argument(
        "--json",
        metavar="PATH",
        help="write the figures as JSON; '-' = standard output, and the text goes to standard "
        "error",
    )
