"""``pmt scheme``: choose the updated parts of sparse back-propagation, by the data."""

import argparse
from typing import Any

from pmt._util.text import table
from pmt.baselines.backprop.options import BackpropOptions
from pmt.baselines.backprop.scheme import head_layer, input_channels
from pmt.baselines.sparse_update.contribution import layer_memory
from pmt.baselines.sparse_update.options import TinyTrainOptions
from pmt.baselines.sparse_update.trainer import METHODS, ChosenScheme, choose_scheme
from pmt.cli.arguments import (
    add_data,
    add_integer,
    add_model,
    add_options,
    add_positive,
    add_protocol,
    add_threads,
    call,
    data_source,
    load_model,
    split_choice,
)
from pmt.cli.output import Output, check_file
from pmt.errors import OptionError
from pmt.firmware.export.target import parse_size
from pmt.train.option_fields import declared_options

USAGE = "pmt scheme MODEL --method NAME --data DIR --out FILE [options]"
SUMMARY = "choose layers and channels for MCUTrain or TinyTrain"
DESCRIPTION = """\
Choose what sparse back-propagation updates, within a memory budget, and write it as JSON for
`pmt profile --scheme`. mcutrain trains each update separately for a few epochs and compares them
on held-out images (contribution analysis); tinytrain scores channels by their Fisher potential."""

# Options of TinyTrain, and of a training of MCUTrain, that have an argument.
_TINYTRAIN = ("backward_macs", "inspect", "scored_images")
_MCUTRAIN = {"epochs": 1, "batch": 64, "learning_rate": 0.01}
_OF = {"mcutrain": (*_MCUTRAIN, "stride", "cache"), "tinytrain": _TINYTRAIN}


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
        help="budget for the memory that the update adds, for example 100K (default: 100K)",
    )
    group = parser.add_argument_group("mcutrain")
    add_integer(group, "--epochs N", "epochs of each training", otherwise="1")
    add_integer(group, "--batch N", "images of a step", otherwise="64")
    add_positive(group, "--learning-rate ETA", "learning rate (default: 0.01)")
    text = "try only every N-th number of last layers for the biases"
    add_integer(group, "--stride N", text, otherwise="1")
    group.add_argument(
        "--cache",
        metavar="FILE",
        help="keep every measurement here; an interrupted analysis continues from it, and another "
        "budget needs no new one",
    )
    group = parser.add_argument_group("tinytrain")
    declared = declared_options(TinyTrainOptions)
    add_options(group, (declared[name] for name in _TINYTRAIN))
    add_data(parser, required=True)
    add_protocol(parser)
    add_threads(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    memory = parse_size("memory", arguments.memory)
    path = check_file("--out", arguments.out)
    chosen = call(
        choose_scheme,
        arguments,
        data=data_source(arguments),
        model=load_model(arguments),
        split=split_choice(arguments),
        memory=memory,
        stride=arguments.stride or 1,
        **_method_options(arguments),
    )
    model, scheme = chosen.model, chosen.scheme
    scheme.save(path, model)
    output.text(_layers_table(chosen))
    output.text(
        f"\n{scheme.weights(model):,} weights and {scheme.biases(model):,} biases; "
        f"{chosen.memory.total:,} bytes of {memory:,}\nscheme  {path}"
    )
    output.figures(chosen.to_json())
    return 0


def _method_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of this method; one of the other is an error."""
    given: dict[str, dict[str, Any]] = {}
    for method, names in _OF.items():
        values = {name: getattr(arguments, name) for name in names}
        given[method] = {name: value for name, value in values.items() if value is not None}
        if given[method] and arguments.method in _OF.keys() - {method}:
            raise OptionError(next(iter(given[method])), f" is an option of {method}: leave it out")
    if arguments.method == "tinytrain":
        return {"tinytrain": TinyTrainOptions(**given["tinytrain"])}
    chosen = {name: given["mcutrain"].get(name, value) for name, value in _MCUTRAIN.items()}
    return {"training": BackpropOptions(**chosen)}


def _layers_table(chosen: ChosenScheme) -> str:
    model = chosen.model
    layers = {layer.index: layer for layer in model.layers}
    rows = []
    for update in chosen.scheme.layers:
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
