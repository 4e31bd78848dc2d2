"""``pmt predict``: the classes of image files."""

import argparse

from pmt._core import MOST_CHANNELS
from pmt._util.text import table
from pmt.cli.arguments import add_integer, add_model, add_threads, call, load_model
from pmt.cli.output import Output
from pmt.model import FilePredictions, predict
from pmt.protocol import load_clean

USAGE = "pmt predict MODEL FILES... [--top K] [options]"
SUMMARY = "the most probable classes of image files"
DESCRIPTION = """\
Classify images: print the most probable classes and their probabilities (0..1). Images are resized
to the model's input."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model(parser)
    parser.add_argument(
        "files",
        metavar="FILES",
        nargs="+",
        help="image files, folders of them, and .npz files with an array 'images'",
    )
    add_integer(parser, "--top K", "classes for each image", default=1, within=(1, MOST_CHANNELS))
    parser.add_argument(
        "--names-of",
        metavar="DIR",
        help="data set whose class names are shown, as `pmt eval --data` takes it (default: the "
        "names stored in the model, or else labels)",
    )
    add_threads(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    model = load_model(arguments)
    names = None
    if arguments.names_of is not None:
        names = load_clean(arguments.names_of, limit=1).class_names
    found = call(predict, arguments, model=model, class_names=names)
    output.text(_table(found))
    output.figures(found.to_json())
    return 0


def _table(found: FilePredictions) -> str:
    rows = []
    for file, labels, shares in zip(found.files, found.labels, found.probabilities, strict=True):
        names = [file, *[""] * (len(labels) - 1)]
        rows += [
            [name, found.class_name(label), f"{share:.4f}"]
            for name, label, share in zip(names, labels, shares, strict=True)
        ]
    return table(["file", "class", "probability"], rows, left=("file", "class"))
