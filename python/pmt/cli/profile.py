"""``pmt profile``: count the work and memory that a method takes on a model."""

import argparse
from collections.abc import Sequence
from typing import Literal

from pmt._util.checks import listed_names
from pmt._util.text import counted, table
from pmt.baselines.sparse_update.options import PUBLISHED, MCUTrainOptions
from pmt.cli.arguments import (
    add_integer,
    add_layers,
    add_model,
    add_plot,
    add_positive,
    call,
    check_one_of_both,
    check_preset,
    load_model,
)
from pmt.cli.output import Output, check_plot
from pmt.errors import OptionError
from pmt.firmware.board.instructions import KERNELS, Instructions
from pmt.firmware.board.memory import BoardMemory, LinkedSizes
from pmt.firmware.board.profile import (
    PROJECTED,
    BoardProfile,
    MethodProfiles,
    profile_instructions,
    profile_methods,
)
from pmt.firmware.export.report import Latency, PlannedSizes
from pmt.firmware.export.target import Target
from pmt.model import Model
from pmt.plots import plot_memory, plot_step_memory, save_plot
from pmt.profiling.profile import METHODS, Profile
from pmt.profiling.step_memory import step_memory
from pmt.train.costs.memory import PARTS, inference_moments
from pmt.train.options import PRESETS

USAGE = """\
pmt profile MODEL --method NAME [--layers SPEC] [--against all] [options]
       pmt profile MODEL --method NAME --target NAME [--link] [options]
       pmt profile MODEL --instructions [--target NAME] [--method NAME ...]"""
SUMMARY = "multiply-accumulates and memory of a training method, or of all side by side"
DESCRIPTION = """\
Count what training takes on a device: forwards and multiply-accumulates per image and per step,
and the peak memory by part. No training is run. The arena of zeroth-order training is exact, as
`pmt export` lays it out; that of back-propagation is a lower bound, what must be alive at once.
With --target the memory is compared with a board's: as computed analytically, as planned and, with
--link, as linked. With --instructions the model runs in QEMU instead, on a Cortex-M7, and the
instructions of each op are counted; for a zeroth-order method, also those of a training step of one
image."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model(parser)
    parser.add_argument("--method", metavar="NAME", help=f"one of {', '.join(METHODS)}")
    parser.add_argument(
        "--preset", metavar="NAME", help=f"{' or '.join(PRESETS)}: the method of this name"
    )
    add_layers(parser)
    parser.add_argument(
        "--against",
        metavar="NAMES",
        help="methods to compare with, separated by commas, or 'all'; with the same batch",
    )
    add_integer(parser, "--batch N", "images of a step", otherwise="the method's own")
    add_integer(
        parser,
        "--queries Q",
        "queries for each image and layer",
        otherwise="the method's own",
        within=(1, 4096),
    )
    parser.add_argument(
        "--scheme",
        metavar="NAME|FILE",
        help="what mcutrain or tinytrain updates: a published scheme of MCUNet "
        f"({', '.join(PUBLISHED)}) or a JSON file (default: {MCUTrainOptions.scheme} for mcutrain)",
    )
    add_plot(parser, "the memory by part")
    parser.add_argument(
        "--plot-step",
        metavar="FILE",
        help="draw the contents of the method's memory at each operation of a step",
    )
    _add_board(parser)
    _add_instructions(parser)


def _add_board(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("board")
    group.add_argument(
        "--target",
        metavar="NAME",
        help="board to compare the memory with, or the path of a TOML file that describes one; "
        f"with --instructions, board to project the latency for (then the default is {PROJECTED})",
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
        help=f"sets of kernels to compare: {', '.join(KERNELS)} (default: the first)",
    )
    add_positive(group, "--clock MHZ", "clock of the core (default: the target's)")
    add_positive(
        group,
        "--cycles-per-instruction X",
        "cycles per instruction in the projection (default: 1, an assumption)",
    )


_OF_INSTRUCTIONS = ("kernels", "clock", "cycles_per_instruction")
_OF_METHODS = ("against", "batch", "scheme", "plot", "plot_step")


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    layers = f"B{arguments.block}" if arguments.block is not None else arguments.layers
    arguments.method = _method(arguments)
    if arguments.link and (arguments.target is None or arguments.instructions):
        raise ValueError("--link needs --target, and no --instructions: name a board to link for")
    for name in _OF_METHODS if arguments.instructions else _OF_INSTRUCTIONS:
        if getattr(arguments, name) is not None:
            rule = "cannot be given with" if arguments.instructions else "needs"
            raise OptionError(name, f" {rule} --instructions; leave it out")
    if arguments.instructions:
        return _run_instructions(arguments, layers, output)
    if arguments.method is None:
        raise ValueError("--method is missing: name a method, or count with --instructions")
    check_plot(arguments.plot)
    check_plot(arguments.plot_step, "--plot-step")
    found = call(
        profile_methods,
        arguments,
        model=load_model(arguments),
        against=_against(arguments.against),
        layers=layers,
    )
    output.text("\n\n".join(_tables(found)))
    for name, reason in found.left_out.items():
        output.text(f"{name} is left out: {reason}")
    if arguments.plot is not None:
        save_plot(plot_memory(found.profiles), arguments.plot)
    if arguments.plot_step is not None:
        step = step_memory(
            found.model,
            arguments.method,
            scheme=arguments.scheme,
            layers=layers,
            batch=arguments.batch,
            queries=arguments.queries,
        )
        save_plot(plot_step_memory(step), arguments.plot_step)
    output.figures(found.to_json())
    return 0


def _method(arguments: argparse.Namespace) -> str | None:
    method: str | None = arguments.method
    if arguments.preset is None:
        return method
    check_one_of_both(arguments)
    check_preset(arguments.preset)
    return str(arguments.preset)


def _against(text: str | None) -> tuple[str, ...] | Literal["all"]:
    if text == "all":
        return "all"
    return listed_names("against", text) if text else ()


def _tables(found: MethodProfiles) -> list[str]:
    tables = [summary(found.model, found.profiles)]
    tables += [work_table(found.profiles), memory_table(found.profiles)]
    if found.board is not None:
        tables.append(board_tables(found.board))
    return tables


def _run_instructions(arguments: argparse.Namespace, layers: str | None, output: Output) -> int:
    found = call(
        profile_instructions,
        arguments,
        model=load_model(arguments),
        kernels=listed_names("kernels", arguments.kernels or KERNELS[0]),
        layers=layers,
        target=arguments.target or PROJECTED,
    )
    output.text(op_table(found.counts))
    if arguments.method is not None:
        output.text("\n" + step_table(found.counts))
    output.text("\n" + latency_lines(found.counts, found.latency))
    output.figures(found.to_json())
    return 0


_WORK = {
    "forward": "forward",
    "queries": "queries",
    "reforwards": "again",
    "restarts": "restarts",
    "input_gradients": "by inputs",
    "weight_gradients": "by weights",
}
_SHORT = {
    "activations": "forward",
    "saved_activations": "saved",
    "activation_gradients": "gradients",
    "weight_gradients": "sums",
    "tables": "losses",
}


def summary(model: Model, profiles: Sequence[Profile]) -> str:
    """Describe the model and its trained layers."""
    arena = max(moment.total for moment in inference_moments(model))
    first = profiles[0]
    weights = sum(layer.weights for layer in model.layers)
    queries = ""
    if first.queries:
        queries = f", {counted(first.queries, 'query', 'queries')} for each image and layer"
    return "\n".join(
        [
            f"model   {weights:,} weights, {model.macs:,} MACs per image, "
            f"{arena:,} bytes of activations alive at once in inference",
            f"method  {first.method}: {first.weights:,} weights and {first.biases:,} biases of "
            f"{counted(len(first.layers), 'layer')}, batch {first.batch}{queries}",
        ]
    )


def work_table(profiles: Sequence[Profile]) -> str:
    """Million multiply-accumulates for each image by purpose, and for each step."""
    shown = {k: title for k, title in _WORK.items() if any(getattr(p.work, k) for p in profiles)}
    rows = [
        [
            p.method,
            f"{p.weights:,}",
            f"{p.biases:,}",
            *(f"{getattr(p.work, key) / 1e6:,.3f}" for key in shown),
            f"{p.work.macs / 1e6:,.3f}",
            f"{p.step_macs / 1e6:,.1f}",
            f"{p.batch * p.work.forwards:,}",
        ]
        for p in profiles
    ]
    titles = ["MMACs per image", "weights", "biases", *shown.values()]
    return table([*titles, "all", "per step", "forwards"], rows, left=("MMACs per image",))


def memory_table(profiles: Sequence[Profile]) -> str:
    """Bytes by part, at the peak."""
    shown = [part for part in PARTS if any(getattr(p.memory, part) for p in profiles)]
    rows = [
        [
            p.method,
            *(f"{getattr(p.memory, part):,}" for part in shown),
            f"{p.memory.sram:,}",
            f"{p.memory.frozen:,}",
        ]
        for p in profiles
    ]
    titles = ["bytes", *(_SHORT.get(part, part) for part in shown), "SRAM", "flash"]
    return table(titles, rows, left=("bytes",))


_PARTS = {
    "layers": "layers",
    "other_ops": "other ops",
    "signs": "signs (Philox)",
    "perturbation": "perturbation",
    "accumulation": "sums of signs",
    "outer_products": "outer products",
    "rest": "everything else",
}


def op_table(counts: Sequence[Instructions]) -> str:
    """Instructions of every op, and for each multiply-accumulate."""
    titles = ["op", "kind", "MACs"]
    for count in counts:
        titles += [count.kernels, "per MAC"]

    def per_mac(instructions: Sequence[int], macs: int) -> list[str]:
        return _beside(instructions, [macs] * len(instructions), ".2f")

    rows = [
        [
            op.name,
            op.kind,
            _macs(op.macs),
            *per_mac([c.ops[i].instructions for c in counts], op.macs),
        ]
        for i, op in enumerate(counts[0].ops)
    ]
    macs = sum(op.macs for op in counts[0].layers)
    layers = [sum(op.instructions for op in count.layers) for count in counts]
    rows.append(["all layers", "", f"{macs:,}", *per_mac(layers, macs)])
    rows.append(["the forward", "", f"{macs:,}", *per_mac([c.forward for c in counts], macs)])
    return table(titles, rows, left=("op", "kind"))


def step_table(counts: Sequence[Instructions]) -> str:
    """Instructions of the parts of a training step, with line buffers, and their sum.

    The shares are of all its forwards on whole activations, which neither repeat rows nor
    run band by band.
    """
    titles = ["a step of one image", "calls"]
    for count in counts:
        titles += [count.kernels, "of forwards"]
    whole = [count.whole_forwards for count in counts]
    rows = [
        [
            title,
            f"{counts[0].step[part][1]:,}" if part != "rest" else "",
            *_beside([count.step[part][0] for count in counts], whole, ".1%"),
        ]
        for part, title in _PARTS.items()
    ]
    for title, taken in (
        ("beyond its forwards", [count.step_total - count.step_forwards for count in counts]),
        ("the step", [count.step_total for count in counts]),
        ("its forwards on whole activations", whole),
        ("one forward of it", [count.main_pass for count in counts]),
    ):
        rows.append([title, "", *_beside(taken, whole, ".1%")])
    return table(titles, rows, left=("a step of one image",))


def latency_lines(counts: Sequence[Instructions], latency: Latency) -> str:
    """Estimate the time of the instructions, and show every factor."""
    lines = [
        f"projected: {latency.factors()}",
        f"the cycles per instruction are {latency.cycles_source}",
    ]
    for count in counts:
        line = f"{count.kernels}: forward {1e3 * latency.seconds(count.forward):,.1f} ms"
        if count.step:
            line += f", step of one image {latency.seconds(count.step_total):,.2f} s"
        lines.append(line)
    return "\n".join(lines)


def _macs(macs: int) -> str:
    return f"{macs:,}" if macs else ""


def _beside(counts: Sequence[int], of: Sequence[int], form: str) -> list[str]:
    """Return each count and its ratio to another number, without one where that is 0."""
    cells = []
    for count, total in zip(counts, of, strict=True):
        cells += [f"{count:,}", format(count / total, form) if total else ""]
    return cells


def board_tables(found: BoardProfile) -> str:
    """Lay out the memory of methods on a board."""
    parts = [_board_table(found.board, found.methods)]
    if found.link and all(row.linked is None for row in found.methods):
        parts.append("nothing is linked: none of these has firmware that fits")
    return "\n".join(parts)


def _board_table(target: Target, rows: Sequence[BoardMemory]) -> str:
    """KB of RAM and of flash by method, and whether it fits."""
    columns = {
        "KB": [row.method for row in rows],
        "analytic": [_kb(row.analytic) for row in rows],
        "planned": [_part(row.planned, "ram") for row in rows],
        "linked": [_part(row.linked, "ram") for row in rows],
        "flash": [_part(row.planned, "flash") for row in rows],
        "flash linked": [_part(row.linked, "flash") for row in rows],
        "verdict": [_verdict(row) for row in rows],
    }
    if all(row.linked is None for row in rows):
        del columns["linked"], columns["flash linked"]
    budget = f"{_kb(target.ram.bytes)} KB of RAM, {_kb(target.flash.bytes)} KB of flash"
    if not target.linked:
        budget = "a library, for a board of yours"
        del columns["verdict"]
    cells = list(zip(*columns.values(), strict=True))
    body = table(list(columns), cells, left=[t for t in ("KB", "verdict") if t in columns])
    return f"memory on {target.name}: {budget}\n{body}"


def _part(sizes: PlannedSizes | LinkedSizes | None, memory: str) -> str:
    return "-" if sizes is None else _kb(getattr(sizes, memory))


def _verdict(row: BoardMemory) -> str:
    if row.fits:
        return "lower bound fits" if row.is_bound else "fits"
    least = "at least " if row.is_bound else ""
    over = {"RAM": row.ram_over, "flash": row.flash_over}
    return ", ".join(f"{name} over by {least}{n:,} bytes" for name, n in over.items() if n)


def _kb(size: int) -> str:
    return f"{size / 1024:,.1f}"
