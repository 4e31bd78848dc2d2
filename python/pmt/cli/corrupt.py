"""``pmt corrupt``: corrupted images on disk, as CIFAR-10-C publishes them."""

import argparse

from pmt._util.progress import ProgressLine
from pmt._util.text import counted
from pmt.cli.arguments import (
    add_coarse_labels,
    add_constants,
    add_corruption_seed,
    add_integer,
    add_size,
    add_split,
    call,
    checked_constants,
    chosen_corruptions,
    chosen_labels,
    data_help,
)
from pmt.cli.output import EXIT_INTERRUPTED, Output, complain
from pmt.corruptions import SEVERITIES, names
from pmt.protocol import CorruptedCopies, open_copies

USAGE = "pmt corrupt DATA --name all|NAME[,NAME...] --out DIR [options]"
SUMMARY = "corrupted copies of a data set, in the layout of CIFAR-10-C"
DESCRIPTION = """\
Write one NAME.npy per corruption, uint8 of shape (5 N, H, W, C): all images at severity 1, then all
at severity 2, up to 5; and labels.npy, the labels five times. `pmt eval --data DIR` and `pmt train`
read them instead of corrupting the images. Ctrl-C leaves complete files only; the same command
continues, and makes no array twice."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", metavar="DATA", help=data_help())
    parser.add_argument(
        "--name",
        metavar="NAMES",
        required=True,
        help="all (without frost if its photographs are missing), or names separated by commas: "
        f"{', '.join(names())}",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        required=True,
        help="folder to write: new, empty, or an earlier one of the same images and seed",
    )
    add_split(parser)
    add_corruption_seed(
        parser,
        ": the train split is corrupted with S, the test split with S + 1, as --corruption-seed S "
        "does in other commands",
    )
    add_integer(
        parser, "--limit N", "at most N images, always the same ones", default=0, otherwise="all"
    )
    add_size(parser, "before they are corrupted")
    add_coarse_labels(parser)
    add_constants(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    split, seed, out = arguments.split, arguments.seed, arguments.out
    copies = call(
        open_copies,
        arguments,
        names=chosen_corruptions("--name", arguments.name),
        labels=chosen_labels(arguments),
        constants=checked_constants(arguments),
    )
    height, width, channels = copies.data.images.shape[1:]
    output.text(
        f"{counted(len(copies.data), f'{split} image')} {height}x{width}x{channels} of "
        f"{arguments.data}, {len(SEVERITIES)} severities, seed {seed}"
    )
    for reason in copies.left_out.values():
        output.text(f"left out: {reason}")
    if copies.already_there:
        output.text(f"already there: {', '.join(copies.already_there)}")
    try:
        with ProgressLine(max(1, len(copies.missing) * copies.images), unit="image") as line:
            for index, name in enumerate(copies.missing):
                _make(copies, index, name, line, output)
    except KeyboardInterrupt:
        complain("interrupted; the same command continues")
        return EXIT_INTERRUPTED
    output.text(
        f"{counted(len(copies.names), 'array')} and labels.npy, {copies.bytes / 1e6:,.1f} MB, in "
        f"{out}"
    )
    output.figures(copies.to_json())
    return 0


def _make(
    copies: CorruptedCopies, index: int, name: str, line: ProgressLine, output: Output
) -> None:
    """Make an array, with a progress line over all of them, and print how fast it went."""
    if index == 0:
        output.text(f"{'corruption':<18}{'images/s':>10}{'seconds':>9}")
    before, text = index * copies.images, f"{name}, {index + 1} of {len(copies.missing)}"
    record = copies.make(name, lambda done: line.update(before + done, text))
    line.clear()
    output.text(f"{name:<18}{record['images_per_second']:>10,.0f}{record['seconds']:>9.1f}")
