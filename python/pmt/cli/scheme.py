"""``pmt scheme``: choose what sparse back-propagation updates, by the data."""

from __future__ import annotations

import argparse
from pathlib import Path

from pmt._util.threads import thread_count
from pmt.baselines.backprop.scheme import UpdateScheme, head_layer, input_channels
from pmt.baselines.sparse_update.contribution import layer_memory, scheme_memory
from pmt.baselines.sparse_update.options import TinyTrainOptions
from pmt.cli.arguments import (
    add_data,
    add_json,
    add_model,
    add_options,
    add_split,
    add_threads,
    integer,
    split_of,
)
from pmt.cli.output import Output, table
from pmt.cli.sources import data_source, load_model
from pmt.firmware.export.target import parse_size
from pmt.model import Model
from pmt.protocol import Split
from pmt.train.option_fields import declared_options

USAGE = "pmt scheme MODEL --method NAME --data DIR --out FILE [options]"
SUMMARY = "choose layers and channels for MCUTrain or TinyTrain"
DESCRIPTION = """\
Choose what sparse back-propagation updates, within a budget of memory, and write it as JSON for
`pmt profile --scheme`. mcutrain trains every update on its own for a few epochs and compares them
on held-out images (contribution analysis); tinytrain scores channels by their Fisher potential, or
with --potentials forward by forward passes alone. The latter needs no torch."""

METHODS = ("mcutrain", "tinytrain")
# Options of TinyTrain that have an argument.
_TINYTRAIN = ("backward_macs", "inspect", "potentials", "scored_images")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model(parser)
    parser.add_argument(
        "--method", metavar="NAME", required=True, help=f"one of {', '.join(METHODS)}"
    )
    parser.add_argument("--out", metavar="FILE", required=True, help="the scheme, as JSON")
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        default="100K",
        help="budget of what the update adds to memory, for example 100K (default: 100K)",
    )
    group = parser.add_argument_group("mcutrain")
    group.add_argument(
        "--epochs", metavar="N", type=integer(1), default=1, help="of each training (default: 1)"
    )
    group.add_argument(
        "--batch", metavar="N", type=integer(1), default=64, help="images of a step (default: 64)"
    )
    group.add_argument(
        "--learning-rate", metavar="ETA", type=float, default=0.01, help="(default: 0.01)"
    )
    group.add_argument(
        "--stride",
        metavar="N",
        type=integer(1),
        default=1,
        help="try the biases of every N-th number of last layers (default: 1)",
    )
    group.add_argument(
        "--cache",
        metavar="FILE",
        help="keep every measurement here; an analysis that was interrupted goes on from it, and "
        "another budget needs no new one",
    )
    group = parser.add_argument_group("tinytrain")
    declared = declared_options(TinyTrainOptions)
    add_options(group, (declared[name] for name in _TINYTRAIN))
    add_data(parser, required=True)
    add_split(parser)
    add_threads(parser)
    add_json(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    if arguments.method not in METHODS:
        known = ", ".join(METHODS)
        raise ValueError(f"--method {arguments.method!r} is unknown; choose one of {known}")
    memory = parse_size("--memory", arguments.memory)
    if not Path(arguments.out).absolute().parent.is_dir():
        raise FileNotFoundError(f"--out {arguments.out}: its folder does not exist; create it")
    source, model = data_source(arguments), load_model(arguments)
    parts = split_of(arguments, source, model)
    if arguments.method == "mcutrain":
        scheme = _by_contribution(arguments, model, parts, memory)
    else:
        scheme = _by_potential(arguments, model, parts, memory)
    scheme.save(arguments.out, model)
    output.text(_layers_table(model, scheme))
    added = scheme_memory(model, scheme)
    output.text(
        f"\n{scheme.weights(model):,} weights and {scheme.biases(model):,} biases; {added.total:,} "
        f"bytes of {memory:,}\nscheme  {arguments.out}"
    )
    output.figures({**scheme.to_json(model), "memory": added.total})
    return 0


def _by_contribution(
    arguments: argparse.Namespace, model: Model, parts: Split, memory: int
) -> UpdateScheme:
    from pmt.baselines.backprop.options import BackpropOptions
    from pmt.baselines.sparse_update.channels import chosen_scheme
    from pmt.baselines.sparse_update.contribution import analyze

    if parts.held_out is None:
        raise ValueError("--held-out 0: a choice needs held-out images; take 100 or more")
    options = BackpropOptions(
        epochs=arguments.epochs, batch=arguments.batch, learning_rate=arguments.learning_rate
    )
    found = analyze(
        model,
        parts.train,
        parts.held_out,
        options=options,
        stride=arguments.stride,
        cache=arguments.cache,
        threads=arguments.threads,
    )
    return chosen_scheme(model, found.scheme(model, memory))


def _by_potential(
    arguments: argparse.Namespace, model: Model, parts: Split, memory: int
) -> UpdateScheme:
    from pmt.baselines.sparse_update.trainer import tinytrain_scheme

    given = {name: value for name in _TINYTRAIN if (value := getattr(arguments, name)) is not None}
    options = TinyTrainOptions(memory=memory, **given)
    return tinytrain_scheme(model, parts.train, options, threads=thread_count(arguments.threads))


def _layers_table(model: Model, scheme: UpdateScheme) -> str:
    layers = {layer.index: layer for layer in model.layers}
    rows = []
    for update in scheme.layers:
        memory = layer_memory(model, update)
        free = update.op == head_layer(model)
        rows.append(
            [
                layers[update.op].name,
                f"{update.channels} of {input_channels(model, update.op)}",
                f"{layers[update.op].biases if update.bias else 0}",
                f"{memory.inputs if free else memory.total:,}",
            ]
        )
    return table(["layer", "channels", "biases", "bytes"], rows, left=("layer",))
