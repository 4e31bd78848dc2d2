"""``pmt corrupt``: corrupted images on disk, as CIFAR-10-C publishes them."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field
from typing import Any

from pmt._util.progress import ProgressLine
from pmt.cli.arguments import (
    DATA_HELP,
    add_coarse_labels,
    add_constants,
    add_json,
    checked_constants,
    integer,
)
from pmt.cli.output import Output
from pmt.cli.process import complain
from pmt.cli.sources import add_corruption_seed, add_size, add_split, chosen_corruptions, read_clean
from pmt.corruptions import SEVERITIES, ArrayWriter, names
from pmt.datasets.layouts import chosen_indices

EXIT_INTERRUPTED = 130

USAGE = "pmt corrupt DATA --name all|NAME[,NAME...] --out DIR [options]"
SUMMARY = "corrupted copies of a data set, in the layout of CIFAR-10-C"
DESCRIPTION = """\
Write one NAME.npy a corruption, uint8 of shape (5 N, H, W, C): all images at severity 1, then all
at severity 2, up to 5; and labels.npy, the labels five times. `pmt eval --data DIR` and `pmt train`
read them in the place of corrupting the images. Ctrl-C leaves whole files only; the same command
goes on, and makes no array twice."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", metavar="DATA", help=DATA_HELP)
    parser.add_argument(
        "--name",
        metavar="NAMES",
        required=True,
        help=f"all, or names separated by commas: {', '.join(names())}",
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
    parser.add_argument(
        "--limit",
        metavar="N",
        type=integer(1),
        default=0,
        help="at most N images, always the same ones (default: all)",
    )
    add_size(parser, "before they are corrupted")
    add_coarse_labels(parser)
    add_constants(parser)
    add_json(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    chosen = chosen_corruptions("--name", arguments.name)
    constants = checked_constants(arguments)
    whole = read_clean(arguments)
    indices = chosen_indices(len(whole), arguments.limit)
    data = whole.subset(indices) if len(indices) < len(whole) else whole
    writer = ArrayWriter(
        data,
        arguments.out,
        split=arguments.split,
        seed=arguments.seed,
        constants=constants,
        indices=indices,
    )
    there = [name for name in chosen if writer.is_whole(name)]
    missing = [name for name in chosen if name not in there]
    writer.check(missing)
    height, width, channels = data.images.shape[1:]
    output.text(
        f"{len(data):,} {arguments.split} images {height}x{width}x{channels} of {arguments.data}, "
        f"{len(SEVERITIES)} severities, seed {arguments.seed}"
    )
    if there:
        output.text(f"already there: {', '.join(there)}")
    work = _Work(writer, output, len(missing))
    try:
        for name in missing:
            work.make(name)
    except KeyboardInterrupt:
        work.line.clear()
        complain("interrupted; the same command goes on")
        return EXIT_INTERRUPTED
    finally:
        work.line.clear()
    total = len(chosen) * writer.size
    output.text(f"{len(chosen)} arrays and labels.npy, {total / 1e6:,.1f} MB, in {arguments.out}")
    output.figures(
        {
            "out": str(arguments.out),
            "n": len(data),
            "split": arguments.split,
            "seed": arguments.seed,
            "constants": constants,
            "already_there": there,
            "made": work.records,
            "bytes": total,
        }
    )
    return 0


@dataclass
class _Work:
    """The arrays to make, with a progress line over all and a text line for each."""

    writer: ArrayWriter
    output: Output
    count: int
    line: ProgressLine = field(init=False)
    records: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.line = ProgressLine(max(1, self.count * self.writer.shape[0]), unit="image")

    def make(self, name: str) -> None:
        """Make one array and print how fast it went."""
        before = len(self.records) * self.writer.shape[0]
        text = f"{name}, {len(self.records) + 1} of {self.count}"
        if not self.records:
            self.output.text(f"{'corruption':<18}{'images/s':>10}{'seconds':>9}")
        start = time.perf_counter()
        self.writer.write(name, lambda done: self.line.update(before + done, text))
        seconds = time.perf_counter() - start
        rate = self.writer.shape[0] / seconds
        self.line.clear()
        self.output.text(f"{name:<18}{rate:>10,.0f}{seconds:>9.1f}")
        self.records.append({"name": name, "images_per_second": rate, "seconds": seconds})
