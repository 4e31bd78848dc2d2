"""``pmt select``: which block to train, found by training each for a short time."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pmt._util.extras import load_pyplot
from pmt.cli.arguments import (
    add_data,
    add_json,
    add_model,
    add_split,
    add_threads,
    add_training_options,
    integer,
    split_of,
    training_options,
)
from pmt.cli.output import Output, table
from pmt.cli.process import complain
from pmt.cli.sources import data_source, load_model
from pmt.model import Model
from pmt.protocol import Split
from pmt.research.plots import plot_selection
from pmt.train.options import TrainingOptions
from pmt.train.selection import CRITERIA, Candidate, Selection, default_candidates, select

EXIT_INTERRUPTED = 130
_NOT_HERE = ("layers", "epochs", "macs", "head_epochs")

USAGE = "pmt select MODEL --data DIR [--corruption NAME --severity S] [options]"
SUMMARY = "choose the block to train by a short training of each"
DESCRIPTION = """\
Train every block for an epoch from the same start, with forward passes alone and the same batches,
and compare them on held-out training images. Test images are not touched. With --out, Ctrl-C leaves
checkpoints and the same command goes on."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model(parser)
    parser.add_argument(
        "--blocks",
        metavar="LIST",
        help="what to choose from, separated by commas: blocks or layers, or several joined by +, "
        "for example B1,B2+head (default: B1, B2, ... of the model)",
    )
    parser.add_argument(
        "--criterion",
        metavar="NAME",
        default="loss",
        help=f"what is compared on the held-out images: {' or '.join(CRITERIA)}, which is the "
        "paper's (default: loss)",
    )
    parser.add_argument(
        "--epochs",
        metavar="N",
        type=integer(1),
        default=1,
        help="of each test training; 1 in the paper (default: 1)",
    )
    parser.add_argument(
        "--seeds",
        metavar="N",
        type=integer(1, 1000),
        default=1,
        help="test trainings of each block, with seeds S, S + 1, ... (default: 1)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="folder for a run folder of each test training, which the same command resumes "
        "(default: nothing is kept)",
    )
    parser.add_argument("--plot", metavar="PATH", help="draw the result; needs matplotlib")
    add_data(parser, required=True)
    add_split(parser)
    add_training_options(parser, without=_NOT_HERE)
    add_threads(parser)
    add_json(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    given = training_options(arguments).replace(epochs=arguments.epochs)
    if arguments.plot is not None:
        _check_plot(arguments.plot)
    source = data_source(arguments)
    model = load_model(arguments)
    names = _names(arguments, model)
    parts = split_of(arguments, source, model)
    _describe(model, parts, given, source.description("train"), output)
    try:
        found = _select(arguments, model, parts, given, names)
    except KeyboardInterrupt:
        if arguments.out is not None:
            command = shlex.join(["pmt", *sys.argv[1:]])
            complain(f"interrupted; go on with: {command}")
            return EXIT_INTERRUPTED
        raise
    _report(found, output)
    if arguments.plot is not None:
        plot_selection(found, arguments.plot)
        output.text(f"plot    {arguments.plot}")
    output.figures(_figures(found, given))
    return 0


def _select(
    arguments: argparse.Namespace,
    model: Model,
    parts: Split,
    options: TrainingOptions,
    names: list[str],
) -> Selection:
    if parts.held_out is None:
        raise ValueError("--held-out 0: a choice needs held-out images; take 100 or more")
    return select(
        model,
        parts.train,
        parts.held_out,
        options=options,
        candidates=names,
        epochs=arguments.epochs,
        criterion=arguments.criterion,
        seeds=arguments.seeds,
        out=arguments.out,
        threads=arguments.threads,
    )


def _names(arguments: argparse.Namespace, model: Model) -> list[str]:
    if arguments.criterion not in CRITERIA:
        raise ValueError(
            f"--criterion {arguments.criterion!r} is unknown; choose one of {', '.join(CRITERIA)}"
        )
    if arguments.blocks is None:
        return default_candidates(model)
    return [name.strip() for name in arguments.blocks.split(",") if name.strip()]


def _check_plot(path: str) -> None:
    """Find out before the work, not after it."""
    load_pyplot()
    if not Path(path).absolute().parent.is_dir():
        raise FileNotFoundError(f"--plot {path}: its folder does not exist; create it")


def _describe(
    model: Model, parts: Split, options: TrainingOptions, data: str, output: Output
) -> None:
    held_out = len(parts.held_out_indices)
    output.text(f"model   {model.name}")
    output.text(f"data    {data}: {len(parts.train_indices):,} training, {held_out:,} held out")
    output.text(
        f"trial   {options.epochs} epoch{'s' if options.epochs > 1 else ''}, batches of "
        f"{options.batch}, {options.queries} queries for each image and layer"
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
        f"{candidate.memory_bytes / 1024:,.1f} KiB",
        f"{candidate.macs / 1e6:,.1f}",
        f"{candidate.loss:.4f}",
        f"{candidate.accuracy:.4f}",
        apart,
        found.verdict(candidate),
    ]


def _sentence(found: Selection) -> str:
    """Say what was chosen and how sure that is."""
    best, unit = found.best, "nats" if found.criterion == "loss" else "of accuracy"
    gain = f"{best.gain.mean:+.4f} ± {best.gain.standard_error:.4f} {unit} better than before"
    if best.gain.mean <= 0:
        return (
            f"{best.name}, but no test training helped: {-best.gain.mean:.4f} {unit} worse than "
            "before; take a smaller --learning-rate or more --queries"
        )
    if found.significant:
        return f"{best.name}: {gain}; significant against every other (95 %, pair by pair)"
    rivals = ", ".join(candidate.name for candidate in found.rivals)
    return (
        f"{best.name}: {gain}; not significant: {rivals} cannot be told apart on "
        f"{found.held_out} images; hold more out, or take the cheapest"
    )


def _figures(found: Selection, options: TrainingOptions) -> dict[str, Any]:
    rows = []
    for candidate in found.candidates:
        row = asdict(candidate)
        row["margin"]["significant"] = candidate.margin.significant
        row["gain"]["significant"] = candidate.gain.significant
        rows.append({**row, "layers": candidate.layers, "verdict": found.verdict(candidate)})
    shown = {k: v for k, v in dataclasses.asdict(options).items() if k != "layers"}
    return {
        "best": found.best.name,
        "criterion": found.criterion,
        "significant": found.significant,
        "rivals": [candidate.name for candidate in found.rivals],
        "before": {"loss": found.loss, "accuracy": found.accuracy},
        "held_out": found.held_out,
        "seeds": found.seeds,
        "candidates": rows,
        "forwards": found.forwards,
        "macs": found.macs,
        "options": shown,
    }
