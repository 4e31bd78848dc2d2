"""``pmt statistics``: measure a model's channels on clean images, for alignments to come."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pmt._util.progress import ProgressLine
from pmt.cli.arguments import add_data, add_json, add_model, add_threads, integer
from pmt.cli.output import Output
from pmt.cli.sources import add_split, data_source, load_model
from pmt.model import Model
from pmt.train.clean_statistics import measure_statistics, with_statistics

USAGE = "pmt statistics MODEL --data DIR --out OUT.pmt [options]"
SUMMARY = "store in a model what its channels and windows see on clean images"
DESCRIPTION = """\
Measure, on images as the model was trained on, mean and deviation of every channel before its
activation and the covariances in the windows of spatial layers, and store them in the model: `pmt
align`, and training at its start, give the model these statistics on other images."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model(parser)
    add_data(parser, required=True)
    add_split(parser, "train")
    add_images(parser)
    add_out(parser)
    add_threads(parser)
    add_json(parser)


def add_images(parser: argparse.ArgumentParser) -> None:
    """Add the number of images."""
    parser.add_argument(
        "--images",
        metavar="N",
        type=integer(1, 100_000),
        default=256,
        help="on at most N images, always the same ones (default: 256)",
    )


def add_out(parser: argparse.ArgumentParser) -> None:
    """Add the model to write."""
    parser.add_argument("--out", metavar="PATH", required=True, help=".pmt file to write")


def checked_out(out: str) -> Path:
    """Find out before the work, not after it."""
    path = Path(out)
    if path.suffix != ".pmt":
        raise ValueError(f"--out {out}: must end in .pmt")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"--out {out}: its folder does not exist; create it")
    return path


@contextmanager
def layer_line(model: Model, what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress line over the model's layers while something is done with each."""
    line = ProgressLine(len(model.layers) - 1, unit="layer")
    try:
        yield lambda layers, _: line.update(layers, what)
    finally:
        line.clear()


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    path = checked_out(arguments.out)
    source = data_source(arguments)
    model = load_model(arguments)
    data = source.load(arguments.split, model, limit=arguments.images)
    with layer_line(model, "measuring") as progress:
        found = measure_statistics(model, data.images, threads=arguments.threads, progress=progress)
    with_statistics(model, found).save(path)
    channels = sum(values.shape[1] for values in found.channels.values())
    output.text(
        f"{channels:,} channels of {len(found.channels)} layers and the windows of "
        f"{len(found.windows)} on {len(data):,} {arguments.split} images of "
        f"{source.description(arguments.split)}"
    )
    output.text(f"the model is {path}")
    output.figures(
        {
            "out": str(path),
            "images": len(data),
            "layers": len(found.channels),
            "channels": channels,
            "windows": len(found.windows),
        }
    )
    return 0
