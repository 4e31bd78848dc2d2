"""``pmt-lab bench``: how fast a model runs and trains on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from pmt._util.text import counted, did_you_mean
from pmt.cli.arguments import (
    add_integer,
    add_json,
    add_layers,
    add_model,
    add_plot,
    integer,
    job_of,
    load_model,
    parts,
    training_options,
)
from pmt.cli.output import Output, check_plot, table
from pmt.model.loading import BUNDLED_MODELS
from pmt.plots import save_plot
from pmt_lab.benchmark.against import Agreement, EngineTime, StepComparison
from pmt_lab.benchmark.bench_job import BenchJob, BenchResult, run_benchmark
from pmt_lab.benchmark.forward import ForwardTime, OpTimes, StepTime, totals
from pmt_lab.benchmark.rivals import RIVALS
from pmt_lab.benchmark.timing import Machine
from pmt_lab.plots import plot_speed

USAGE = "pmt-lab bench [MODEL] [--images N,N] [--threads T,T] [--against NAMES] [options]"
SUMMARY = "speed of a model: forward, layers, training step; and of other engines"
DESCRIPTION = """\
Time a model (default: the bundled one) on random images: the forward, each layer, and a training
step. Figures are medians of measurements taken in turns. MACs are multiply-accumulates; the peak is
that of a loop that uses registers only, measured in the same run."""

_RULES = ("weight", "node", "pooled", "by_dimension")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model(parser, required=False)
    parser.add_argument(
        "--images",
        metavar="N,N",
        type=_listed(integer(1, 100_000)),
        default=(1, 100),
        help="numbers of images per forward (default: 1,100)",
    )
    parser.add_argument(
        "--threads",
        metavar="T,T",
        type=_listed(integer(0, 1024)),
        default=(1, 0),
        help="numbers of threads, 0 = all; layers are timed on one (default: 1,0)",
    )
    add_integer(
        parser,
        "--repeat N",
        "measurements per figure, of which the median is shown",
        default=7,
        within=(1, 1000),
    )
    _add_step(parser)
    parser.add_argument(
        "--against",
        metavar="NAMES",
        type=_listed(_one_of(RIVALS)),
        default=(),
        help=f"engines to compare with, in the same process: {', '.join(RIVALS)} (default: none)",
    )
    add_plot(parser, "the layers' speed")
    add_json(parser)


def _add_step(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("training step")
    group.add_argument(
        "--steps",
        metavar="RULES",
        type=_listed(_one_of((*_RULES, "none"))),
        default=("weight", "node"),
        help=f"estimators to time: {', '.join(_RULES)}, or none (default: weight,node)",
    )
    add_layers(parser)
    add_integer(group, "--batch N", "images of a step", default=20, within=(1, 100_000))
    add_integer(
        group, "--queries Q", "queries for each image and layer", default=10, within=(2, 4096)
    )


def _listed(convert: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    """Return an argument type: values separated by commas, each taken once."""

    def split(text: str) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(convert(part) for part in parts(text)))

    return split


def _one_of(names: tuple[str, ...]) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"{text!r} is unknown{did_you_mean(text, names)}")
        return text

    return convert


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    arguments.model = arguments.model or BUNDLED_MODELS[0]
    options = training_options(argparse.Namespace(**{**vars(arguments), "preset": None}))
    check_plot(arguments.plot)
    job = job_of(
        BenchJob,
        arguments,
        model=load_model(arguments),
        path=arguments.model,
        rules=tuple(rule for rule in arguments.steps if rule != "none"),
        options=options,
    )

    def measured(name: str, result: BenchResult) -> None:
        output.text(_TEXTS[name](result))
        if name == "ops" and arguments.plot is not None:
            save_plot(plot_speed(job.model, result.machine, result.ops), arguments.plot)
            output.text(f"\nplot {arguments.plot}")

    output.figures(run_benchmark(job, measured=measured).to_json())
    return 0


def _start(result: BenchResult) -> str:
    macs = result.job.model.macs
    return f"{result.job.path}: {macs:,} MACs per image\n{machine_text(result.machine)}"


def _steps(result: BenchResult) -> str:
    options = result.job.options
    return (
        f"\ntraining of {options.layers}: {counted(options.batch, 'image')}, "
        f"{counted(options.queries, 'query', 'queries')} for each image and layer\n"
        f"{step_table(result.steps)}"
    )


_TEXTS: dict[str, Callable[[BenchResult], str]] = {
    "machine": _start,
    "forwards": lambda result: "\n" + forward_table(result.forwards),
    "ops": lambda result: "\n" + op_table(result.ops, result.machine.one_thread_gmacs),
    "steps": _steps,
    "engines": lambda result: "\n" + engine_table(result.engines),
    "agreement": lambda result: "\n" + agreement_lines(result.agreement),
    "engine_steps": lambda result: "\n" + step_comparison_table(result.engine_steps),
}


def machine_text(machine: Machine) -> str:
    """Say what ran where."""
    peaks = ", ".join(
        f"{gmacs:.1f} GMAC/s with {counted(count, 'thread')}"
        for count, gmacs in machine.peak_gmacs.items()
    )
    return (
        f"pmt {machine.pmt}, kernels {machine.kernels}, {machine.processor}, "
        f"{counted(machine.threads, 'thread')}\n"
        f"peak of {machine.peak_instruction} in registers: {peaks}"
    )


def forward_table(times: Sequence[ForwardTime]) -> str:
    """Lay out the whole forwards."""
    rows = [
        [
            "forward",
            str(time.images),
            str(time.threads),
            f"{time.microseconds:,.1f}",
            f"{time.gmacs:.1f}",
            _percent(time.share),
        ]
        for time in times
    ]
    return table(["", "images", "threads", "us/image", "GMAC/s", "peak"], rows, left=("",))


def op_table(ops: Sequence[OpTimes], peak: float) -> str:
    """Lay out the ops, and under them their sums by group. ``peak`` is that of one thread."""
    counts = list(ops[0].microseconds)
    titles = ["op", "name", "kind", "window", "shape", "MACs"]
    for count in counts:
        titles += [f"us @{count}", "GMAC/s", "peak"]
    rows = [
        [str(i), op.name, op.kind, op.window, op.shape, *_speeds(op, counts, peak)]
        for i, op in enumerate(ops)
    ]
    rows.append([""] * len(titles))
    for group in totals(list(ops)):
        rows.append(["", group.name, "", "", "", *_speeds(group, counts, peak)])
    return table(titles, rows, left=("name", "kind", "window", "shape"))


def _speeds(op: OpTimes, counts: Sequence[int], peak: float) -> list[str]:
    cells = [f"{op.macs:,}" if op.macs else ""]
    for count in counts:
        gmacs = op.gmacs(count)
        cells.append(f"{op.microseconds[count]:,.2f}")
        cells += [f"{gmacs:.1f}", _percent(gmacs / peak)] if op.macs else ["", ""]
    return cells


def step_table(times: Sequence[StepTime]) -> str:
    """Lay out the training steps.

    ``overhead`` is their time over that of their MACs at the speed of the forward, ``speed-up``
    that over the first number of threads.
    """
    first = {time.rule: time.seconds for time in reversed(times)}
    rows = [
        [
            time.rule,
            str(time.threads),
            f"{time.seconds:.3f}",
            f"{time.forwards:,}",
            f"{time.macs / 1e9:,.1f}",
            f"{time.gmacs:.1f}",
            f"{time.overhead:.2f}",
            f"{first[time.rule] / time.seconds:.2f}",
        ]
        for time in times
    ]
    titles = ["step", "threads", "seconds", "forwards", "GMAC", "GMAC/s", "overhead", "speed-up"]
    return table(titles, rows, left=("step",))


def engine_table(times: Sequence[EngineTime]) -> str:
    """Lay out the engines; ``x pmt`` is an engine's time over pmt's."""
    rows = [
        [
            time.engine,
            str(time.images),
            str(time.threads),
            f"{time.microseconds:,.1f}",
            f"{time.gmacs:.1f}",
            f"{time.ratio:.2f}",
        ]
        for time in times
    ]
    return table(
        ["engine", "images", "threads", "us/image", "GMAC/s", "x pmt"], rows, left=("engine",)
    )


def agreement_lines(found: Sequence[Agreement]) -> str:
    """Say how outputs compare with pmt's."""
    lines = []
    for a in found:
        line = f"{a.engine}: same best class for {_percent(a.top1)} of {a.images} random images"
        if a.equal is not None:
            line += f", {_percent(a.equal)} of outputs equal"
            line += f", others at most {a.largest} off" if a.largest else ""
        lines.append(line)
    return "\n".join(lines)


def step_comparison_table(times: Sequence[StepComparison]) -> str:
    """Lay out the steps by perturbed forward."""
    rows = [
        [
            time.engine,
            str(time.threads),
            f"{time.seconds:.3f}",
            f"{time.forwards:,}",
            f"{time.microseconds:,.1f}",
        ]
        for time in times
    ]
    titles = ["step", "threads", "seconds", "forwards", "us/forward"]
    return table(titles, rows, left=("step",))


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
