"""``pmt statistics``: measure a model's channels on clean images, for later alignment."""

import argparse

from pmt._util.progress import ProgressLine
from pmt._util.text import counted
from pmt.cli.arguments import (
    add_data,
    add_model,
    add_model_out,
    add_split,
    add_statistics_images,
    add_threads,
    call,
    data_source,
    load_model,
)
from pmt.cli.output import Output, checked_model_out
from pmt.train.prepare import store_statistics

USAGE = "pmt statistics MODEL --data DIR --out OUT.pmt [options]"
SUMMARY = "store the statistics of channels and windows on clean images in a model"
DESCRIPTION = """\
Measure, on images like the training images, mean and deviation of every channel before its
activation and the covariances in the windows of spatial layers, and store them in the model.
`pmt align`, and the preparation of `pmt train`, restore these statistics on other images."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model(parser)
    add_data(parser, required=True)
    add_split(parser, "train")
    add_statistics_images(parser)
    add_model_out(parser)
    add_threads(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    path = checked_model_out(arguments.out, arguments.model, replace=arguments.force)
    data, model = data_source(arguments), load_model(arguments)
    split = arguments.split
    with ProgressLine(len(model.layers) - 1, unit="layer") as line:
        measured = call(
            store_statistics,
            arguments,
            model=model,
            data=data,
            progress=lambda done, _: line.update(done, "measuring"),
        )
    measured.model.save(path)
    found = measured.statistics
    output.text(
        f"{counted(measured.channels, 'channel')} of {counted(len(found.channels), 'layer')} and "
        f"the windows of {len(found.windows)} on "
        f"{counted(measured.images, f'{split} image')} of {data.description(split)}"
    )
    output.text(f"the model is {path}")
    output.figures({"out": str(path), **measured.to_json()})
    return 0
