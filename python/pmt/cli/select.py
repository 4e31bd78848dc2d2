"""``pmt select``: which block to train, found by training each for a short time."""

import argparse
import shlex
import sys

from pmt._util.text import counted, table
from pmt.cli.arguments import (
    add_data,
    add_integer,
    add_model,
    add_plot,
    add_protocol,
    add_threads,
    add_training_options,
    call,
    candidates,
    data_source,
    load_model,
    split_choice,
    training_options,
)
from pmt.cli.output import EXIT_INTERRUPTED, Output, check_plot, complain
from pmt.model import Model
from pmt.plots import plot_selection, save_plot
from pmt.protocol import DataSource, Split
from pmt.train.choose import CRITERIA, Candidate, Selection, select_block
from pmt.train.choose.blocks import MOST_SEEDS
from pmt.train.options import TrainingOptions
from pmt.train.run.keep_best import CHOICE

_NOT_HERE = ("layers", "epochs", "macs", "cross_fit", *CHOICE)

USAGE = "pmt select MODEL --data DIR [--corruption NAME --severity S] [options]"
SUMMARY = "choose the block to train by a short training of each"
DESCRIPTION = """\
Train every block for an epoch from the same state, with forward passes only and the same batches,
and compare them on held-out training images. Test images are not used. With --out, Ctrl-C leaves
checkpoints and the same command continues."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model(parser)
    parser.add_argument(
        "--blocks",
        metavar="LIST",
        help="candidates, separated by commas: blocks or layers, or several joined by +, for "
        "example B1,B2+head (default: B1, B2, ... of the model)",
    )
    parser.add_argument(
        "--criterion",
        metavar="NAME",
        default="loss",
        help=f"figure that is compared on the held-out images: {' or '.join(CRITERIA)}; the paper "
        "uses accuracy (default: loss)",
    )
    add_integer(parser, "--epochs N", "epochs of each trial run; 1 in the paper", default=1)
    add_integer(
        parser,
        "--seeds N",
        "trial runs of each block, with seeds S, S + 1, ...",
        default=1,
        within=(1, MOST_SEEDS),
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="folder for the run folders of the trial runs, which the same command resumes "
        "(default: nothing is kept)",
    )
    add_plot(parser, "loss and accuracy of the candidates")
    add_data(parser, required=True)
    add_protocol(parser)
    add_training_options(parser, without=_NOT_HERE)
    add_threads(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    options = training_options(arguments).replace(epochs=arguments.epochs)
    check_plot(arguments.plot)
    model = load_model(arguments)
    data = data_source(arguments)
    try:
        found = call(
            select_block,
            arguments,
            model=model,
            data=data,
            split=split_choice(arguments),
            options=options,
            candidates=_candidates(arguments.blocks, model),
            opened=lambda images: _describe(model, data, options, images, output),
        )
    except KeyboardInterrupt:
        if arguments.out is not None:
            command = shlex.join(["pmt", *sys.argv[1:]])
            complain(f"interrupted; continue with: {command}")
            return EXIT_INTERRUPTED
        raise
    _report(found, output)
    if arguments.plot is not None:
        save_plot(plot_selection(found), arguments.plot)
        output.text(f"plot    {arguments.plot}")
    output.figures(found.to_json())
    return 0


def _candidates(blocks: str | None, model: Model) -> tuple[str, ...] | None:
    if blocks is None:
        return None
    names = candidates("blocks", blocks)
    for name in names:
        model.select_layers(name.replace("+", ","), argument="blocks")
    return names


def _describe(
    model: Model, data: DataSource, options: TrainingOptions, images: Split, output: Output
) -> None:
    train, held_out = len(images.train_indices), len(images.held_out_indices)
    output.text(f"model   {model.name}")
    output.text(f"data    {data.description('train')}: {train:,} training, {held_out:,} held out")
    output.text(
        f"trial   {counted(options.epochs, 'epoch')}, batches of {options.batch}, "
        f"{counted(options.queries, 'query', 'queries')} for each image and layer"
    )


def _report(found: Selection, output: Output) -> None:
    titles = ["block", "weights", "memory", "MMAC/image", "loss", "accuracy", "margin", "verdict"]
    start = ["before", "", "", "", f"{found.loss:.4f}", f"{found.accuracy:.4f}", "", ""]
    rows = [_row(found, candidate) for candidate in found.candidates]
    output.text(table(titles, [start, *rows], left=["block", "verdict"]))
    output.text(_sentence(found))
    scored = found.held_out * (1 + len(found.candidates) * found.seeds)
    output.text(
        f"{found.forwards:,} perturbed forwards, {found.macs / 1e9:,.1f} GMAC, and "
        f"{scored:,} forwards of held-out images"
    )


def _row(found: Selection, candidate: Candidate) -> list[str]:
    margin = candidate.margin
    apart = "" if candidate is found.best else f"{margin.mean:.4f} ± {margin.standard_error:.4f}"
    return [
        candidate.name,
        f"{candidate.weights:,}",
        f"{candidate.memory_bytes / 1024:,.1f} KB",
        f"{candidate.macs / 1e6:,.1f}",
        f"{candidate.loss:.4f}",
        f"{candidate.accuracy:.4f}",
        apart,
        found.verdict(candidate),
    ]


def _sentence(found: Selection) -> str:
    """Describe the choice, and how sure it is."""
    best, unit = found.best, "nats" if found.criterion == "loss" else "of accuracy"
    gain = f"{best.gain.mean:+.4f} ± {best.gain.standard_error:.4f} {unit} better than before"
    if best.gain.mean <= 0:
        return (
            f"{best.name}, but no trial run helped: {-best.gain.mean:.4f} {unit} worse than "
            "before; take a smaller --learning-rate or more --queries"
        )
    if found.significant:
        return f"{best.name}: {gain}; significant against every other (95 %, pair by pair)"
    rivals = ", ".join(candidate.name for candidate in found.rivals)
    return (
        f"{best.name}: {gain}; not significant: {rivals} cannot be told apart on "
        f"{counted(found.held_out, 'image')}; hold more out, or take the cheapest"
    )
