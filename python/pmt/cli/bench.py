"""``pmt bench``: how fast a model runs and trains on this machine."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pmt import _core
from pmt._util.extras import load_pyplot
from pmt.cli import bench_report as report
from pmt.cli.arguments import add_json, add_layers, add_model, integer, training_options
from pmt.cli.output import Output
from pmt.cli.sources import load_model
from pmt.model import Model
from pmt.model.loading import BUNDLED_MODELS
from pmt.research.benchmark.against import compare_forwards, compare_steps, outputs_agree
from pmt.research.benchmark.forward import profile, time_forwards, time_steps
from pmt.research.benchmark.rivals import RIVALS, Rival, open_rivals
from pmt.research.benchmark.timing import Machine
from pmt.research.plots import plot_speed
from pmt.train.options import TrainingOptions

USAGE = "pmt bench [MODEL] [--images N,N] [--threads T,T] [--against NAMES] [options]"
SUMMARY = "speed of a model: forward, layers, training step; and of other engines"
DESCRIPTION = """\
Time a model (default: the bundled one) on random images: the forward, each layer, and a training
step. Figures are medians of measurements taken in turns. MACs are multiply-accumulates; the peak is
that of a loop which touches registers only, measured in the same run."""

_RULES = ("weight", "node", "by_dimension")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model(parser, required=False)
    parser.add_argument(
        "--images",
        metavar="N,N",
        type=_listed(integer(1, 100_000)),
        default=(1, 100),
        help="numbers of images of a forward (default: 1,100)",
    )
    parser.add_argument(
        "--threads",
        metavar="T,T",
        type=_listed(integer(0, 1024)),
        default=(1, 0),
        help="numbers of threads, 0 = all; layers are timed on one (default: 1,0)",
    )
    parser.add_argument(
        "--repeat",
        metavar="N",
        type=integer(1, 1000),
        default=7,
        help="measurements of each figure, whose median is shown (default: 7)",
    )
    _add_step(parser)
    parser.add_argument(
        "--against",
        metavar="NAMES",
        type=_listed(_one_of(RIVALS)),
        default=(),
        help=f"engines to compare with, in the same process: {', '.join(RIVALS)} (default: none)",
    )
    parser.add_argument("--plot", metavar="PATH", help="draw the layers' speed, as .png, .svg, ...")
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
    group.add_argument(
        "--batch",
        metavar="N",
        type=integer(1, 100_000),
        default=20,
        help="images of a step (default: 20)",
    )
    group.add_argument(
        "--queries",
        metavar="Q",
        type=integer(2, 4096),
        default=10,
        help="queries for each image and layer (default: 10)",
    )


def _listed(convert: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    """Return an argument type: values separated by commas, each taken once."""

    def split(text: str) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(convert(part.strip()) for part in text.split(",")))

    return split


def _one_of(names: tuple[str, ...]) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(
                f"{text!r} is unknown; choose one of {', '.join(names)}"
            )
        return text

    return convert


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    arguments.model = arguments.model or BUNDLED_MODELS[0]
    options = training_options(argparse.Namespace(**{**vars(arguments), "preset": None}))
    _check_plot(arguments.plot)
    model = load_model(arguments)
    model.select_layers(options.layers)
    rivals = [r for name in arguments.against for r in open_rivals(name, model, arguments.model)]
    threads = tuple(dict.fromkeys(_core.threads(count) for count in arguments.threads))
    machine = Machine.measured(threads)
    output.text(f"{arguments.model}: {model.macs:,} MACs an image")
    output.text(report.machine_text(machine))
    figures = {"model": str(arguments.model), "macs": model.macs, "repeat": arguments.repeat}
    figures["machine"] = dataclasses.asdict(machine)
    figures |= _forwards(arguments, output, model, machine)
    figures |= _steps(arguments, output, model, machine, options)
    figures |= _against(arguments, output, model, machine, options, rivals)
    output.figures(figures)
    return 0


def _check_plot(path: str | None) -> None:
    """Find out before the work, not after it."""
    if path is None:
        return
    load_pyplot()
    if not Path(path).absolute().parent.is_dir():
        raise FileNotFoundError(f"--plot {path}: its folder does not exist; create it")


def _forwards(
    arguments: argparse.Namespace, output: Output, model: Model, machine: Machine
) -> dict[str, Any]:
    measured: dict[str, Any] = {"images": arguments.images, "repeat": arguments.repeat}
    forwards = time_forwards(model, machine, **measured)
    output.text("\n" + report.forward_table(forwards))
    ops = profile(model, **measured)
    output.text("\n" + report.op_table(ops, machine.one_thread_gmacs))
    if arguments.plot is not None:
        plot_speed(model, machine, ops, arguments.plot)
        output.text(f"\nplot {arguments.plot}")
    layers = [
        dataclasses.asdict(op) | {"gmacs": {count: op.gmacs(count) for count in op.microseconds}}
        for op in ops
    ]
    return {"forward": _plain(forwards), "layers": layers}


def _steps(
    arguments: argparse.Namespace,
    output: Output,
    model: Model,
    machine: Machine,
    options: TrainingOptions,
) -> dict[str, Any]:
    rules = _rules(arguments)
    if not rules:
        return {"steps": []}
    steps = time_steps(model, machine, options, rules=rules, repeat=arguments.repeat)
    output.text(
        f"\ntraining of {options.layers}: {options.batch} images, {options.queries} queries for "
        "each image and layer"
    )
    output.text(report.step_table(steps))
    chosen = {"layers": options.layers, "batch": options.batch, "queries": options.queries}
    return {"steps": [chosen | step for step in _plain(steps)]}


def _against(
    arguments: argparse.Namespace,
    output: Output,
    model: Model,
    machine: Machine,
    options: TrainingOptions,
    rivals: list[Rival],
) -> dict[str, Any]:
    if not rivals:
        return {"engines": [], "agreement": [], "engine_steps": []}
    engines = compare_forwards(
        model, machine, rivals, images=arguments.images, repeat=arguments.repeat
    )
    output.text("\n" + report.engine_table(engines))
    found = outputs_agree(model, rivals)
    output.text("\n" + report.agreement_lines(found))
    steps = []
    if "torch" in arguments.against and _rules(arguments):
        steps = compare_steps(
            model, machine, options, rules=_rules(arguments), repeat=arguments.repeat
        )
        output.text("\n" + report.step_comparison_table(steps))
    return {"engines": _plain(engines), "agreement": _plain(found), "engine_steps": _plain(steps)}


def _rules(arguments: argparse.Namespace) -> tuple[str, ...]:
    return tuple(rule for rule in arguments.steps if rule != "none")


def _plain(records: list[Any]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(record) for record in records]
