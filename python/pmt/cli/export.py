"""``pmt export``: a firmware project that continues to train the model."""

from __future__ import annotations

import argparse
from typing import Any

from pmt.cli.arguments import (
    add_data,
    add_integer,
    add_layers,
    add_method,
    add_model,
    add_training_options,
    candidates,
    check_one_of_both,
    data_source,
    given_options,
    importer_options,
)
from pmt.cli.output import Output
from pmt.cli.typed_names import flag
from pmt.firmware.export import (
    ExportReport,
    LearnerExport,
    Lock,
    export_files,
    export_learner_files,
    read_lock,
)
from pmt.firmware.export.card import SAVE_INTERVAL
from pmt.firmware.export.layout import FORMATS
from pmt.firmware.export.learner import FRAMES, SAMPLES, STATES
from pmt.firmware.export.project import BOARD_SIZES, board_options
from pmt.firmware.export.task import MOST_STEPS
from pmt.train.run.keep_best import CHOICE

USAGE = """pmt export RUN_OR_MODEL --target NAME --out DIR [--data DIR] [options]
       pmt export MODEL --learner --target NAME --out DIR [--samples N]
       pmt export RUN_OR_MODEL --inference --target NAME --out DIR
       pmt export --from pmt.lock --out DIR [RUN_OR_MODEL] [--data DIR]"""
SUMMARY = "a firmware project that trains the model on a microcontroller"
DESCRIPTION = """\
Write a project with the core's sources, the model, a board, and card.img: the images, the steps,
and every result that the host computed from them. The firmware trains, compares its results with
the host's, and writes checkpoints to the card. A run folder brings its options and its data, and
training continues from its last step; only --batch and --queries are not taken from the run or the
preset. The folder's pmt.lock holds all arguments, and the hashes of all inputs and files: --from
writes the same folder again, byte for byte, or says what differs."""

_PASSED_ON = (
    *("target", "like", "format", "out", "preset", "method", "held_out", "steps", "save_interval"),
    *("ram", "flash", "stack", "force"),
)
# Arguments that say where to write, not what to write.
_NOT_LOCKED = {"out", "force", "json", "lock", "run", "default_of", "argument_names"}
# May be given with --from: where the inputs are now.
_LOCATIONS = {"model", "data"}
_OF_INFERENCE = {
    *("model", "target", "like", "format", "out", "force", "ram", "flash", "json", "inference"),
    *("input_mean", "input_std"),
}
_NO_LAYERS = "--select says what to train: give no --layers and no --block"
_OF_A_LEARNER = _OF_INFERENCE | {
    *("learner", "select", "held_out", "samples", "frames", "states", "windows", "reliability"),
    *("choose_input", "keep_confirmed", "keep_activations", "preset", "method"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model(parser, required=False)
    parser.add_argument(
        "--from",
        dest="lock",
        metavar="LOCK",
        help="pmt.lock of an earlier export to write again, from the inputs that it names, or from "
        "MODEL and --data if these have moved",
    )
    _add_project(parser)
    _add_budgets(parser)
    _add_learner(parser)
    _add_training(parser)
    parser.set_defaults(default_of=parser.get_default)


def _add_project(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--target",
        metavar="NAME",
        help="board, for example stm32f746g-disco, or the path of a TOML file that describes one; "
        "an unknown name lists them all",
    )
    parser.add_argument(
        "--as",
        dest="like",
        metavar="NAME",
        help="limit an emulated board to the flash and RAM of this one",
    )
    parser.add_argument(
        "--format",
        metavar="NAME",
        choices=FORMATS,
        default="make",
        help="build system: make (with CMake), platformio for a board; zephyr or arduino for the "
        "target generic; of --learner and --inference make or zephyr (default: make)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        required=True,
        help="folder to write: new, empty, or an earlier export, of which app/ and files that no "
        "export wrote are kept, and build/ is removed",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace files of an earlier export that were changed since; files that no export "
        "wrote are never replaced",
    )


def _add_budgets(parser: argparse.ArgumentParser) -> None:
    add_integer(
        parser, "--steps N", "training steps of the firmware", default=5, within=(1, MOST_STEPS)
    )
    text = "steps between checkpoints on the card"
    add_integer(parser, "--save-interval N", text, default=SAVE_INTERVAL, within=(1, MOST_STEPS))
    for name, what in (("--ram", "RAM"), ("--flash", "flash")):
        parser.add_argument(
            name,
            metavar="SIZE",
            help=f"{what} budget, in bytes or as 256K, 1M; firmware that does not fit does not "
            "link (default: the board's)",
        )
    parser.add_argument(
        "--stack",
        metavar="SIZE",
        help="bytes of stack, for example 8K; the board's log shows how much was used (default: "
        "the board's, and 2 KB more with --select)",
    )


def _add_learner(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "a board that learns by itself, or only predicts; no card.img"
    )
    group.add_argument(
        "--learner",
        action="store_true",
        help="write a program that takes samples in over the serial line, aligns itself to them, "
        "solves its head, with --layers or another training option trains for --epochs, and keeps "
        "the best state; `pmt stream` talks to it",
    )
    group.add_argument(
        "--inference",
        action="store_true",
        help="write a program that predicts frames from the serial line, and learns nothing",
    )
    add_integer(group, "--samples N", "most samples of --learner", otherwise=str(SAMPLES))
    group.add_argument(
        "--frames",
        choices=FRAMES,
        help="where its frames wait: on the board, or on the PC at the other end of the line "
        "(default: on the board where they fit)",
    )
    group.add_argument(
        "--states",
        choices=STATES,
        default="card",
        help="where its states outlive a reset: on the card, or in flash: the last two sectors of "
        "an STM32F746's, Zephyr's storage_partition (default: %(default)s)",
    )
    group.add_argument(
        "--windows",
        action="store_true",
        help="align windows on the board too, not only channels, with their layers' weights in RAM",
    )
    group.add_argument(
        "--reliability",
        action="store_true",
        help="with --windows, also weigh channels by how little noise they let through, with the "
        "weights of nearly all layers in RAM",
    )
    group.add_argument(
        "--choose-input",
        action="store_true",
        help="choose filters before the network on the board, from frames of the camera's size",
    )
    group.add_argument(
        "--keep-confirmed",
        action="store_true",
        help="hold its confirmed state in RAM while it learns a second time",
    )
    group.add_argument(
        "--keep-activations",
        action="store_true",
        help="hold activations of its samples in the board's external memory, so that alignment "
        "takes two forwards a sample at most, not one a layer",
    )


def _add_training(parser: argparse.ArgumentParser) -> None:
    add_layers(parser)
    parser.add_argument(
        "--select",
        metavar="LIST",
        help="let the board choose which of these to train: blocks or layers separated by commas, "
        "or several joined by +, for example B1,B2+head; it tries each for all steps, or, "
        "with --learner, for one epoch",
    )
    add_integer(
        parser,
        "--held-out N",
        "training images that --select chooses on, or samples that --learner does at most",
        otherwise="100; a quarter",
    )
    add_data(parser, required=False)
    add_integer(
        parser,
        "--limit N",
        "choose from at most N training images, always the same ones",
        otherwise="all",
    )
    add_method(parser, settable=False)
    # A board holds no images out, and keeps its head.
    add_training_options(parser, without=(*CHOICE, "cross_fit"), defaults=BOARD_SIZES)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    if arguments.learner or arguments.inference:
        learner = _exported_learner(arguments)
        output.text(str(learner))
        output.figures(learner.to_json())
        return 0
    named = ("windows", "reliability", "choose_input", "keep_confirmed", "keep_activations")
    for option in (*named, "frames", "states", "samples"):
        if getattr(arguments, option) != arguments.default_of(option):
            raise ValueError(f"{flag(option)} needs --learner")
    lock = None
    if arguments.lock is not None:
        lock = read_lock(arguments.lock)
        arguments = _locked_arguments(arguments, lock)
    report = _exported(arguments, lock)
    output.text(str(report))
    output.figures(report.to_json())
    return 0


def _given(arguments: argparse.Namespace) -> dict[str, Any]:
    return {k: v for k, v in vars(arguments).items() if v != arguments.default_of(k)}


def _check_named(arguments: argparse.Namespace) -> None:
    for name, shown in (("model", "MODEL"), ("target", "--target")):
        if getattr(arguments, name) is None:
            raise ValueError(f"{shown} is missing; see `pmt export --help`")


def _exported_learner(arguments: argparse.Namespace) -> LearnerExport:
    chosen = given_options(arguments)
    kind, known = "--learner", _OF_A_LEARNER | {"block", *chosen}
    if arguments.inference:
        kind, known = "--inference", _OF_INFERENCE
    others = sorted(_given(arguments).keys() - known - {"run", "default_of"})
    if others:
        raise ValueError(f"{flag(others[0])} does not go with {kind}")
    select = None if arguments.select is None else candidates("select", arguments.select)
    if select is not None and "layers" in chosen:
        raise ValueError(_NO_LAYERS)
    trains = bool(chosen) or select is not None
    unused = sorted({"preset", "method"} & _given(arguments).keys())
    if unused and not trains:
        raise ValueError(
            f"{flag(unused[0])} says how layers are trained, and none are named: give --layers or "
            "--select, or leave it out"
        )
    _check_named(arguments)
    return export_learner_files(
        arguments.model,
        target=arguments.target,
        like=arguments.like,
        format=arguments.format,
        out=arguments.out,
        windows=arguments.windows,
        reliability=arguments.reliability,
        choose_input=arguments.choose_input,
        samples=0 if arguments.inference else arguments.samples or SAMPLES,
        held_out=arguments.held_out,
        keeps_confirmed=arguments.keep_confirmed,
        keeps_activations=arguments.keep_activations,
        frames=arguments.frames,
        states=arguments.states,
        options=board_options(arguments.preset, arguments.method, chosen) if trains else None,
        select=select,
        ram=arguments.ram,
        flash=arguments.flash,
        force=arguments.force,
        importer=importer_options(arguments),
    )


def _locked_arguments(arguments: argparse.Namespace, lock: Lock) -> argparse.Namespace:
    """Return the arguments of the earlier export, with where to write and to read as given now."""
    if lock.arguments is None:
        raise ValueError(
            f"{arguments.lock}: has no arguments of the command line, as of a learner or an export "
            "from Python; export a learner again with the arguments in learner.json, else call "
            "export(..., lock=read_lock(path)) of pmt.firmware.export with the same arguments"
        )
    given = _given(arguments)
    for name in given.keys() - _NOT_LOCKED - _LOCATIONS:
        raise ValueError(
            f"{flag(name)} cannot be given with --from, which takes it from "
            f"{arguments.lock}; export without --from to change it"
        )
    return argparse.Namespace(**{**vars(arguments), **lock.arguments, **given})


def _exported(arguments: argparse.Namespace, lock: Lock | None) -> ExportReport:
    _check_named(arguments)
    check_one_of_both(arguments)
    given = given_options(arguments)
    if arguments.select is not None and "layers" in given:
        raise ValueError(_NO_LAYERS)
    corrupted = arguments.corruption is not None or arguments.severity is not None
    if arguments.data is None and corrupted:
        raise ValueError("--corruption and --severity need --data DIR")
    for name in ("class_names", "groups", "constants", "coarse_labels", "corruption_seed"):
        if arguments.data is None and getattr(arguments, name) is not None:
            raise ValueError(f"{flag(name)} needs --data DIR")
    return export_files(
        arguments.model,
        **{name: getattr(arguments, name) for name in _PASSED_ON},
        importer=importer_options(arguments),
        data=None if arguments.data is None else data_source(arguments),
        limit=arguments.limit or 0,
        options=given,
        select=None if arguments.select is None else candidates("select", arguments.select),
        arguments={k: v for k, v in vars(arguments).items() if k not in _NOT_LOCKED},
        lock=lock,
    )
