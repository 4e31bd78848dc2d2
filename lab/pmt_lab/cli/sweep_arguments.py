"""Arguments of the commands that run sweeps: on which workers, and which part."""

from __future__ import annotations

import argparse

from pmt.cli.arguments import add_integer

__all__ = ["add_workers", "check_workers"]


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add processes, the part of a sweep and the cluster."""
    add_integer(
        parser,
        "--jobs N",
        "processes of one thread each, 0 = one per CPU; 1 = this process with all its threads",
        default=0,
        within=(0, 4096),
    )
    parser.add_argument(
        "--shard",
        metavar="I/N",
        type=_shard,
        default=(1, 1),
        help="run the I-th of N equal parts, for N machines that share one folder, or whose "
        "folders are copied together later; every part includes all trials (default: 1/1)",
    )
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="run on the Dask cluster of this scheduler, for example tcp://10.0.0.1:8786, whose "
        "workers see the runs, the model and the data under the same paths",
    )


def check_workers(arguments: argparse.Namespace) -> None:
    """Refuse processes together with a cluster."""
    if arguments.dask is not None and arguments.jobs:
        raise ValueError(f"--jobs {arguments.jobs}: the cluster of --dask has its own workers")


def _shard(text: str) -> tuple[int, int]:
    """Read the part of a sweep, I/N; the type of an argument."""
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} must be I/N, for example 2/4")
    if not 1 <= int(number) <= int(count):
        raise argparse.ArgumentTypeError(f"{text!r}: I must be 1..N")
    return int(number), int(count)
