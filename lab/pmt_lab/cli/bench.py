"""``pmt-lab bench``: how fast a model runs and trains on this machine."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pmt
from pmt.model import BUNDLED_MODELS
from pmt_lab.benchmark.bench_job import run_benchmark
from pmt_lab.benchmark.forward import totals
from pmt_lab.benchmark.rivals import RIVALS
from pmt_lab.cli.common import (
    Output,
    add_number,
    listed,
    one_of,
    table,
    whole,
)
from pmt_lab.files import counted

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


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    model = pmt.load(arguments.model)

    figures = run_benchmark(
        model,
        arguments.model,
        images=arguments.images,
        threads=arguments.threads,
        repeat=arguments.repeat,
        rules=tuple(rule for rule in arguments.steps if rule != "none"),
        options=pmt.TrainingOptions(
            layers=arguments.layers, batch=arguments.batch, queries=arguments.queries
        ),
        against=arguments.against,
        measured=lambda key, figures: output.text(_TEXTS[key](figures)),
    )
    output.figures(figures)
    return 0


Record = Mapping[str, Any]

# Columns of tables: how a record is shown under each title.
_ENGINE = {
    "images": "{images}",
    "threads": "{threads}",
    "us/image": "{microseconds:,.1f}",
    "GMAC/s": "{gmacs:.1f}",
}
_FORWARDS = {"": "forward", **_ENGINE, "peak": "{share:.0%}"}
_STEPS = {
    "step": "{rule}",
    "threads": "{threads}",
    "seconds": "{seconds:.3f}",
    "forwards": "{forwards:,}",
    "GMAC": "{billions:,.1f}",
    "GMAC/s": "{gmacs:.1f}",
    "overhead": "{overhead:.2f}",
    "speed-up": "{speedup:.2f}",
}
_ENGINES = {"engine": "{engine}", **_ENGINE, "x pmt": "{ratio:.2f}"}


def _laid_out(rows: Sequence[Record], columns: Mapping[str, str]) -> str:
    """Lay out records, the first column aligned to the left."""
    cells = [[_shown(cell, row) for cell in columns.values()] for row in rows]
    return table(list(columns), cells, left=list(columns)[:1])


def _shown(form: str, record: Record) -> str:
    return form.format_map(record).replace("%", " %")


def _start(figures: Record) -> str:
    machine = figures["machine"]
    peaks = ", ".join(
        f"{gmacs:.1f} GMAC/s with {counted(count, 'thread')}"
        for count, gmacs in machine["peak_gmacs"].items()
    )
    return (
        f"{figures['model']}: {figures['macs']:,} MACs per image\n"
        f"pmt {machine['pmt']}, kernels {machine['kernels']}, {machine['processor']}, "
        f"{counted(machine['threads'], 'thread')}\n"
        f"peak of {machine['peak_instruction']} in registers: {peaks}"
    )


def _forwards(figures: Record) -> str:
    return "\n" + _laid_out(figures["forward"], _FORWARDS)


def _layers(figures: Record) -> str:
    """Lay out the ops, and under them their sums by group; the peak is that of one thread."""
    ops, peak = figures["layers"], figures["machine"]["one_thread_gmacs"]
    counts = list(ops[0]["microseconds"])
    labels = ("name", "kind", "window", "shape")
    titles = ["op", *labels, "MACs"]
    for count in counts:
        titles += [f"us @{count}", "GMAC/s", "peak"]
    rows = [[str(i), *(op[k] for k in labels), *_speeds(op, peak)] for i, op in enumerate(ops)]
    rows.append([""] * len(titles))
    rows += [["", group["name"], "", "", "", *_speeds(group, peak)] for group in totals(ops)]
    return "\n" + table(titles, rows, left=labels)


def _speeds(op: Record, peak: float) -> list[str]:
    cells = [f"{op['macs']:,}" if op["macs"] else ""]
    for count, microseconds in op["microseconds"].items():
        gmacs = op["gmacs"][count]
        speed = [f"{gmacs:.1f}", f"{100 * gmacs / peak:.0f} %"] if op["macs"] else ["", ""]
        cells += [f"{microseconds:,.2f}", *speed]
    return cells


def _steps(figures: Record) -> str:
    """Lay out the training steps; the speed-up is that over the first number of threads."""
    steps = figures["steps"]
    first = {step["rule"]: step["seconds"] for step in reversed(steps)}
    more = [
        {"billions": step["macs"] / 1e9, "speedup": first[step["rule"]] / step["seconds"]}
        for step in steps
    ]
    rows = [{**step, **own} for step, own in zip(steps, more, strict=True)]
    return (
        f"\ntraining of {steps[0]['layers']}: {counted(steps[0]['batch'], 'image')}, "
        f"{steps[0]['queries']} queries for each image and layer\n{_laid_out(rows, _STEPS)}"
    )


def _engines(figures: Record) -> str:
    return "\n" + _laid_out(figures["engines"], _ENGINES)


def _agreement(figures: Record) -> str:
    """Say how outputs compare with pmt's."""
    lines = []
    for one in figures["agreement"]:
        line = "{engine}: same best class for {top1:.0%} of {images} random images"
        if one["equal"] is not None:
            line += ", {equal:.0%} of outputs equal"
            line += ", others at most {largest} off" if one["largest"] else ""
        lines.append(_shown(line, one))
    return "\n" + "\n".join(lines)


_TEXTS: dict[str, Callable[[Record], str]] = {
    "machine": _start,
    "forward": _forwards,
    "layers": _layers,
    "steps": _steps,
    "engines": _engines,
    "agreement": _agreement,
}
