"""``pmt align``: restore a model's clean statistics on new images."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from pmt._util.text import counted
from pmt.cli.arguments import (
    add_data,
    add_json,
    add_model,
    add_model_out,
    add_split,
    add_statistics_images,
    add_threads,
    data_source,
    load_model,
)
from pmt.cli.output import Output, checked_model_out, layer_line
from pmt.train.prepare import align_model

USAGE = "pmt align MODEL --data DIR [--corruption NAME --severity S] --out OUT.pmt [options]"
SUMMARY = "adapt a model to images without labels, by its statistics only"
DESCRIPTION = """\
Restore, on new images, the channel statistics that the model stores for clean images
(`pmt statistics`): mean and deviation of every channel, by biases and weight scales; and the
covariances in the windows of spatial layers, by their weights. If the new images are noisy,
channels that the noise changes much get less weight in the layers that follow. Forward passes
only; labels are not used."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model(parser)
    add_data(parser, required=True, seed_names=("--corruption-seed", "--seed"))
    add_split(parser, "train")
    add_statistics_images(parser)
    parser.add_argument(
        "--no-windows",
        dest="windows",
        action="store_false",
        help="align channels only; no int8 weight changes",
    )
    parser.add_argument(
        "--no-reliability",
        dest="reliability",
        action="store_false",
        help="leave the weights of unreliable channels as they are",
    )
    add_model_out(parser)
    add_threads(parser)
    add_json(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    path = checked_model_out(arguments.out, arguments.model, replace=arguments.force)
    data, model = data_source(arguments), load_model(arguments)
    split = arguments.split
    with layer_line(model, "aligning") as progress:
        done = align_model(
            model,
            data,
            split=split,
            images=arguments.images,
            windows=arguments.windows,
            reliability=arguments.reliability,
            threads=arguments.threads,
            progress=progress,
        )
    model.save(path)
    output.text(
        f"{counted(done.layers, 'layer')} aligned to "
        f"{counted(done.images, f'{split} image')} of {data.description(split)}"
    )
    if done.layers == 0:
        output.text(
            "the model is unchanged: one image, or copies of it, cannot tell a shift from chance; "
            "give --images 2 or more"
        )
    output.text(f"{done.forwards:,} forwards, {done.macs / 1e9:,.1f} GMAC; the model is {path}")
    output.figures({"out": str(path), **asdict(done)})
    return 0
