"""``pmt eval``: accuracy and loss of a model on a data set, by class, against another model."""

import argparse

import pmt
from pmt._util.text import counted
from pmt.cli.arguments import (
    add_data,
    add_integer,
    add_model,
    add_split,
    add_threads,
    call,
    data_source,
    load_model,
)
from pmt.cli.output import Output
from pmt.protocol import evaluate_model

USAGE = "pmt eval MODEL --data DIR [--corruption NAME --severity S] [options]"
SUMMARY = "accuracy and loss of a model on a data set"
DESCRIPTION = "Measure accuracy (0..1) and mean cross-entropy loss (nats)."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model(parser)
    add_data(parser, required=True, seed_names=("--corruption-seed", "--seed"))
    add_split(parser)
    add_integer(
        parser, "--limit N", "at most N images, always the same ones", default=0, otherwise="all"
    )
    parser.add_argument("--by-class", action="store_true", help="print accuracy by class")
    parser.add_argument(
        "--confusion",
        action="store_true",
        help="print the confusion matrix, or the most frequent errors if there are more than 20 "
        "classes",
    )
    parser.add_argument(
        "--against",
        metavar="OTHER",
        help="another model or run to compare with on the same images: MODEL minus OTHER in "
        "accuracy and loss, with 95 %% intervals paired by image",
    )
    add_threads(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    split, against = arguments.split, arguments.against
    source = data_source(arguments)
    found = call(
        evaluate_model,
        arguments,
        model=load_model(arguments),
        source=source,
        against=None if against is None else pmt.load(against),
        names=(arguments.model, against),
    )
    result = found.evaluation
    output.text(f"{counted(result.n, f'{split} image')} of {source.description(split)}")
    output.text(f"accuracy {result.accuracy:.4f}  loss {result.loss:.4f}")
    if found.comparison is not None:
        output.text(f"\n{found.comparison}")
    if arguments.by_class:
        output.text(f"\n{found.confusion.by_class()}")
    if arguments.confusion:
        output.text(f"\n{found.confusion}")
    output.figures(found.to_json(confusion=arguments.by_class or arguments.confusion))
    return 0
