"""``pmt-lab bench``: how fast a model runs and trains on this machine."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pmt
from pmt.model import BUNDLED_MODELS
from pmt.plots import save_plot
from pmt_lab.benchmark.against import Agreement, EngineTime, StepComparison
from pmt_lab.benchmark.bench_job import BenchJob, BenchResult, run_benchmark
from pmt_lab.benchmark.forward import ForwardTime, OpTimes, StepTime, totals
from pmt_lab.benchmark.rivals import RIVALS
from pmt_lab.benchmark.timing import Machine
from pmt_lab.cli.common import (
    Output,
    add_number,
    add_plot,
    check_plot,
    listed,
    one_of,
    table,
    whole,
)
from pmt_lab.files import counted
from pmt_lab.plots import plot_speed

SUMMARY = "speed of a model: forward, layers, training step; and of other engines"
DESCRIPTION = """\
Time a model (default: the bundled one) on random images: the forward, each layer, and a training
step. Figures are medians of measurements taken in turns. MACs are multiply-accumulates; the peak is
that of a loop that uses registers only, measured in the same run."""

_RULES = ("weight", "node", "pooled", "by_dimension")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("model", metavar="MODEL", nargs="?", default=BUNDLED_MODELS[0], help="file or bundled name")
    add(
        "--images",
        metavar="N,N",
        type=listed(whole(1)),
        default=(1, 100),
        help="numbers of images per forward (default: 1,100)",
    )
    add(
        "--threads",
        metavar="T,T",
        type=listed(whole(0)),
        default=(1, 0),
        help="numbers of threads, 0 = all; layers are timed on one (default: 1,0)",
    )
    add_number(parser, "--repeat N", "measurements per figure, of which the median is shown", 7)
    add(
        "--steps",
        metavar="RULES",
        type=listed(one_of((*_RULES, "none"))),
        default=("weight", "node"),
        help=f"estimators to time: {', '.join(_RULES)}, or none (default: weight,node)",
    )
    add("--layers", metavar="SPEC", default="all", help="blocks or layers that are trained")
    add_number(parser, "--batch N", "images of a step", 20)
    add_number(parser, "--queries Q", "queries for each image and layer", 10, low=2)
    add(
        "--against",
        metavar="NAMES",
        type=listed(one_of(RIVALS)),
        default=(),
        help=f"engines to compare with, in the same process: {', '.join(RIVALS)} (default: none)",
    )
    add_plot(parser, "the layers' speed")


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    check_plot(arguments.plot)
    job = BenchJob(
        pmt.load(arguments.model),
        arguments.model,
        images=arguments.images,
        threads=arguments.threads,
        repeat=arguments.repeat,
        rules=tuple(rule for rule in arguments.steps if rule != "none"),
        options=pmt.TrainingOptions(
            layers=arguments.layers, batch=arguments.batch, queries=arguments.queries
        ),
        against=arguments.against,
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
        f"{options.queries} queries for each image and layer\n"
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
    """Describe the machine."""
    peaks = ", ".join(
        f"{gmacs:.1f} GMAC/s with {counted(count, 'thread')}"
        for count, gmacs in machine.peak_gmacs.items()
    )
    return (
        f"pmt {machine.pmt}, kernels {machine.kernels}, {machine.processor}, "
        f"{counted(machine.threads, 'thread')}\n"
        f"peak of {machine.peak_instruction} in registers: {peaks}"
    )


def _laid_out(rows: Sequence[Any], columns: Mapping[str, Callable[[Any], str]]) -> str:
    """Lay out one column for each title, the first aligned to the left."""
    cells = [[cell(row) for cell in columns.values()] for row in rows]
    return table(list(columns), cells, left=list(columns)[:1])


_ENGINE: dict[str, Callable[[Any], str]] = {
    "images": lambda time: str(time.images),
    "threads": lambda time: str(time.threads),
    "us/image": lambda time: f"{time.microseconds:,.1f}",
    "GMAC/s": lambda time: f"{time.gmacs:.1f}",
}
_STEP: dict[str, Callable[[Any], str]] = {
    "threads": lambda time: str(time.threads),
    "seconds": lambda time: f"{time.seconds:.3f}",
    "forwards": lambda time: f"{time.forwards:,}",
}


def forward_table(times: Sequence[ForwardTime]) -> str:
    """Lay out the whole forwards."""
    share = {"peak": lambda time: _percent(time.share)}
    return _laid_out(times, {"": lambda time: "forward", **_ENGINE, **share})


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
    more: dict[str, Callable[[Any], str]] = {
        "GMAC": lambda time: f"{time.macs / 1e9:,.1f}",
        "GMAC/s": lambda time: f"{time.gmacs:.1f}",
        "overhead": lambda time: f"{time.overhead:.2f}",
        "speed-up": lambda time: f"{first[time.rule] / time.seconds:.2f}",
    }
    return _laid_out(times, {"step": lambda time: time.rule, **_STEP, **more})


def engine_table(times: Sequence[EngineTime]) -> str:
    """Lay out the engines; ``x pmt`` is an engine's time over pmt's."""
    ratio = {"x pmt": lambda time: f"{time.ratio:.2f}"}
    return _laid_out(times, {"engine": lambda time: time.engine, **_ENGINE, **ratio})


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
    each = {"us/forward": lambda time: f"{time.microseconds:,.1f}"}
    return _laid_out(times, {"step": lambda time: time.engine, **_STEP, **each})


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
