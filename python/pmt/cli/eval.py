"""``pmt eval``: accuracy and loss of a model on a data set."""

from __future__ import annotations

import argparse

from pmt.cli.arguments import (
    add_data,
    add_integer,
    add_json,
    add_model,
    add_split,
    add_threads,
    data_source,
    load_model,
)
from pmt.cli.output import Output

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
    add_threads(parser)
    add_json(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    source = data_source(arguments)
    model = load_model(arguments)
    data = source.load(arguments.split, model, limit=arguments.limit)
    result = model.evaluate(data, threads=arguments.threads)
    output.text(f"{result.n:,} {arguments.split} images of {source.description(arguments.split)}")
    output.text(f"accuracy {result.accuracy:.4f}  loss {result.loss:.4f}")
    output.figures({"accuracy": result.accuracy, "loss": result.loss, "n": result.n})
    return 0
