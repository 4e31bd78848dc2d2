"""``pmt profile``: what a method takes on a model, counted."""

from __future__ import annotations

import argparse

from pmt.cli.arguments import add_json, add_layers, add_model, integer
from pmt.cli.output import Output
from pmt.cli.profile_report import (
    latency_lines,
    memory_table,
    op_table,
    plan_table,
    report_board,
    step_table,
    summary,
    work_table,
)
from pmt.cli.sources import load_model
from pmt.firmware.board.instructions import KERNELS, count_instructions
from pmt.firmware.export.latency import project_latency
from pmt.firmware.export.sources import find_target
from pmt.model import Model
from pmt.research import profile as methods
from pmt.research.profile import Profile

USAGE = """\
pmt profile MODEL --method NAME [--layers SPEC] [--against all] [--plan] [options]
       pmt profile MODEL --method NAME --target NAME [--link] [--against all] [options]
       pmt profile MODEL --instructions [--target NAME] [--kernels NAMES] [--method NAME ...]"""
SUMMARY = "multiply-accumulates and memory of a training method, or of all side by side"
DESCRIPTION = """\
Count what training takes on a device: forwards and multiply-accumulates for each image and step,
and the peak memory by part. No training is run. The arena of zeroth-order training is exact, as
`pmt export` lays it out; that of back-propagation is a lower bound, what must be alive at once.
With --target the memory is compared with a board's, as counted with pencil and paper, as planned
and, with --link, as linked; and a forward alone with that of TensorFlow Lite Micro. With
--instructions the model runs under QEMU instead, on a Cortex-M7, and the instructions of each op
are counted; with a zeroth-order method, too, those of a training step of one image."""

_ALL = "all"
_PROJECTED = "stm32f746g-disco"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model(parser)
    known = ", ".join(methods.METHODS)
    parser.add_argument("--method", metavar="NAME", help=f"one of {known}")
    add_layers(parser)
    parser.add_argument(
        "--against",
        metavar="NAMES",
        help="methods to put beside it, separated by commas, or 'all'; with the same batch",
    )
    parser.add_argument(
        "--batch",
        metavar="N",
        type=integer(1),
        help="images of a step (default: the method's own)",
    )
    parser.add_argument(
        "--queries",
        metavar="Q",
        type=integer(1, 4096),
        help="queries for each image and layer (default: the method's own)",
    )
    parser.add_argument(
        "--scheme",
        metavar="NAME|FILE",
        help="what mcutrain or tinytrain updates: a published scheme of MCUNet (49KB, 74KB, 99KB, "
        "124KB, 148KB) or a JSON file (default: 99KB for mcutrain)",
    )
    parser.add_argument(
        "--plot", metavar="FILE", help="draw the memory by part (.png, .svg or .pdf)"
    )
    parser.add_argument(
        "--plan", action="store_true", help="print where the method's activations live on a device"
    )
    _add_board(parser)
    _add_instructions(parser)
    add_json(parser)


def _add_board(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("board")
    group.add_argument(
        "--target",
        metavar="NAME",
        help="board to compare the memory with, or the path of a TOML file that describes one; "
        f"with --instructions, to project the latency for (default: {_PROJECTED} there)",
    )
    group.add_argument(
        "--link",
        action="store_true",
        help="build the firmware of the methods that fit, and add what the linker laid out; needs "
        "arm-none-eabi-g++ and make, and no data",
    )


def _add_instructions(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("instructions")
    group.add_argument(
        "--instructions",
        action="store_true",
        help="count the instructions of a Cortex-M7; needs arm-none-eabi-g++ and qemu-system-arm",
    )
    group.add_argument(
        "--kernels",
        metavar="NAMES",
        default=KERNELS[0],
        help=f"sets of kernels side by side: {', '.join(KERNELS)} (default: the first)",
    )
    group.add_argument(
        "--clock", metavar="MHZ", type=float, help="of the core (default: the target's)"
    )
    group.add_argument(
        "--cycles-per-instruction",
        metavar="X",
        type=float,
        help="to project with (default: 1, an assumption)",
    )


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    layers = f"B{arguments.block}" if arguments.block is not None else arguments.layers
    if arguments.link and (arguments.target is None or arguments.instructions):
        raise ValueError("--link needs --target, and no --instructions: name a board to link for")
    if arguments.instructions:
        return _run_instructions(arguments, layers, output)
    if arguments.method is None:
        raise ValueError("--method is missing: name a method, or count with --instructions")
    names = _names(arguments.method, arguments.against)
    model = load_model(arguments)
    first = methods.profile_method(
        model,
        arguments.method,
        layers=layers,
        batch=arguments.batch,
        queries=arguments.queries,
        scheme=arguments.scheme,
    )
    profiles, omitted = [first], {}
    for name in names[1:]:
        try:
            profiles.append(_other(model, name, first, layers, arguments))
        except ValueError as error:
            if arguments.against != _ALL:
                raise
            omitted[name] = str(error)
    plan = _plan(model, first) if arguments.plan else None
    board = None
    if arguments.target is not None:
        board = report_board(model, profiles, arguments.target, link=arguments.link)
    output.text(summary(model, profiles))
    output.text("\n" + work_table(profiles))
    output.text("\n" + memory_table(profiles))
    if plan is not None:
        output.text("\n" + plan)
    if board is not None:
        output.text("\n" + board.text)
    for name, reason in omitted.items():
        output.text(f"{name} is left out: {reason}")
    if arguments.plot is not None:
        from pmt.research.plots import plot_memory

        plot_memory(profiles, arguments.plot)
    counted = {"profiles": [p.to_json() for p in profiles], "left_out": omitted}
    output.figures({**counted, **(board.figures if board is not None else {})})
    return 0


def _plan(model: Model, profile: Profile) -> str:
    if profile.device is None:
        raise ValueError(
            f"--plan: {profile.method} is not trained by the core, which plans "
            "zeroth-order methods alone; choose one of these as --method"
        )
    return plan_table(model, profile.device, profile.ops)


def _run_instructions(arguments: argparse.Namespace, layers: str | None, output: Output) -> int:
    board = find_target(arguments.target or _PROJECTED)
    factors = project_latency(board, arguments.clock, arguments.cycles_per_instruction)
    options = None
    if arguments.method is not None:
        options = methods.zeroth_order_options(
            arguments.method, layers=layers, queries=arguments.queries
        )
    kernels = [name.strip() for name in arguments.kernels.split(",")]
    model = load_model(arguments)
    counts = count_instructions(model, kernels=list(dict.fromkeys(kernels)), options=options)
    output.text(op_table(counts))
    if options is not None:
        output.text("\n" + step_table(counts))
    output.text("\n" + latency_lines(counts, factors))
    output.figures({"instructions": [c.to_json() for c in counts], "latency": vars(factors)})
    return 0


def _names(method: str, against: str | None) -> list[str]:
    if against is None:
        return [method]
    others = methods.METHODS if against == _ALL else [n.strip() for n in against.split(",")]
    return [method, *(name for name in others if name and name != method)]


def _other(
    model: Model, name: str, first: Profile, layers: str | None, arguments: argparse.Namespace
) -> Profile:
    """Profile another method: the same batch; layers and queries where they are not its own."""
    own = name in methods.OWN_LAYERS
    queries = None if name in methods.OWN_QUERIES else arguments.queries
    return methods.profile_method(
        model,
        name,
        layers=None if own else layers,
        batch=first.batch,
        queries=queries,
        scheme=arguments.scheme if own else None,
    )
