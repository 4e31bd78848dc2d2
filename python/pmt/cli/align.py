"""``pmt align``: restore a model's clean statistics on new images."""

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
from pmt.formats.writing import note_on_filters
from pmt.train.prepare import align_model
from pmt.train.prepare.input_choice import LIKELY_TRIALS

USAGE = "pmt align MODEL --data DIR [--corruption NAME] --out OUT.pmt [options]"
SUMMARY = "adapt a model to images without labels, by its statistics only"
DESCRIPTION = """\
Restore, on new images, the channel statistics that the model stores for clean images
(`pmt statistics`): mean and deviation of every channel, by biases and weight scales; and the
covariances in the windows of spatial layers, by their weights. If the new images are noisy,
channels that the noise changes much get less weight in the layers that follow. Filters before the
network are chosen first, by the predictions of aligned copies of the model: against noise, blur,
low contrast and others; none, where none is clearly better. Forward passes only; labels are not
used."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model(parser)
    add_data(parser, required=True, seed_names=("--corruption-seed", "--seed"))
    add_split(parser, "train")
    add_statistics_images(parser)
    parser.add_argument(
        "--no-input",
        dest="choose_input",
        action="store_false",
        help="choose no filters before the network",
    )
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


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    path = checked_model_out(arguments.out, arguments.model, replace=arguments.force)
    data, model = data_source(arguments), load_model(arguments)
    split = arguments.split
    with (
        ProgressLine(len(model.layers) - 1, unit="layer") as layer_line,
        ProgressLine(LIKELY_TRIALS, unit="candidate") as input_line,
    ):
        done = call(
            align_model,
            arguments,
            model=model,
            data=data,
            progress=lambda done, _: layer_line.update(done, "aligning"),
            input_progress=lambda number, trial: input_line.update(number, trial.text),
        )
    model.save(path)
    if done.choice is not None and len(done.choice.trials) > 1:
        output.text(f"input stage: {done.choice}")
        for note in note_on_filters(model.input_stage, "align with --no-input"):
            output.text(note)
    layers, images = done.alignment.layers, done.alignment.images
    output.text(
        f"{counted(layers, 'layer')} aligned to "
        f"{counted(images, f'{split} image')} of {data.description(split)}"
    )
    if layers == 0:
        output.text(
            "the model is unchanged: one image, or copies of it, cannot tell a shift from chance; "
            "give --limit 2 or more"
        )
    output.text(f"{done.forwards:,} forwards, {done.macs / 1e9:,.1f} GMAC; the model is {path}")
    output.figures({"out": str(path), **done.to_json()})
    return 0
