"""``pmt train``: adapt a model, in a run folder that can be resumed."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from dataclasses import dataclass
from typing import Any

from pmt import _core, methods
from pmt._util.printable import printable
from pmt._util.progress import duration
from pmt.cli.arguments import (
    add_data,
    add_json,
    add_layers,
    add_method,
    add_model,
    add_threads,
    add_training_options,
    chosen_trainer,
    given_options,
    integer,
)
from pmt.cli.output import EpochLines, Output
from pmt.cli.process import complain
from pmt.cli.sources import data_source, load_model
from pmt.datasets import Dataset
from pmt.datasets.dataset import checksum
from pmt.model import Model
from pmt.protocol.data_source import DataSource, model_path
from pmt.train.options import TrainingOptions
from pmt.train.result import RunResult
from pmt.train.run_folder import RunFolder, RunOptions
from pmt.train.schedule import Schedule
from pmt.train.training_run import Trainer

EXIT_INTERRUPTED = 130

USAGE = """\
pmt train MODEL --data DIR [--corruption NAME --severity S] --out RUN [options]
       pmt train --resume RUN"""
SUMMARY = "adapt a model to data, with forward passes alone"
DESCRIPTION = """\
Train layers of a model on the train split. The test split, with another corruption seed, is only
watched: nothing is chosen on it. Ctrl-C leaves a checkpoint; the same command, or --resume, goes
on from there, bit for bit."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model(parser, required=False)
    parser.add_argument(
        "--out",
        metavar="RUN",
        help="folder of the run: config.toml, metrics.jsonl, checkpoint.pmt, DONE. An unfinished "
        "run of the same command is resumed",
    )
    parser.add_argument(
        "--resume", metavar="RUN", help="go on with a run; all else is in its config.toml"
    )
    add_layers(parser)
    add_data(parser, required=False)
    for name, what in (("--limit", "training images"), ("--valid-limit", "test images")):
        parser.add_argument(
            name,
            metavar="N",
            type=integer(1),
            help=f"at most N {what}, always the same ones (default: all)",
        )
    add_method(parser)
    add_training_options(parser)
    add_threads(parser)
    add_json(parser)


@dataclass(frozen=True)
class Job:
    """Everything that a run needs."""

    folder: RunFolder
    model: Model
    trainer: Trainer
    source: dict[str, Any]
    data: Dataset
    valid: Dataset | None


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    job = _resumed(arguments) if arguments.resume is not None else _started(arguments)
    schedule = job.trainer.schedule(job.model, len(job.data))
    _describe(job, schedule, output)
    lines = EpochLines(job.folder, schedule, output)
    try:
        result = job.trainer.fit(
            job.model,
            job.data,
            valid=job.valid,
            out=job.folder,
            source=job.source,
            progress=lines.after_step,
        )
    except KeyboardInterrupt:
        lines.stop()
        command = shlex.join(["pmt", "train", "--resume", str(job.folder.path)])
        complain(f"interrupted; go on with: {command}")
        return EXIT_INTERRUPTED
    lines.finish()
    _report(job, result, output)
    return 0


def _started(arguments: argparse.Namespace) -> Job:
    for name in ("model", "data", "out"):
        if getattr(arguments, name) is None:
            shown = "MODEL" if name == "model" else f"--{name}"
            raise ValueError(f"{shown} is missing; see `pmt train --help`")
    trainer = chosen_trainer(arguments)
    data = data_source(arguments)
    folder = RunFolder(arguments.out)
    if not folder.exists():
        folder.check_free()  # before the work of loading; fit() does it as well
    model = load_model(arguments)
    model.select_layers(trainer.options.layers)
    source = {
        "model": model_path(arguments.model),
        "model_crc32": _core.crc32(model.image()),
        **data.to_config(),
        "limit": arguments.limit or 0,
        "valid_limit": arguments.valid_limit or 0,
    }
    return _with_data(folder, model, trainer, source)


def _resumed(arguments: argparse.Namespace) -> Job:
    given = [*given_options(arguments)]
    given += [
        name
        for name in (
            "model",
            "data",
            "out",
            "method",
            "preset",
            "set",
            "corruption",
            "severity",
            "limit",
            "valid_limit",
            "coarse_labels",
            "constants",
        )
        if getattr(arguments, name) is not None
    ]
    if given:
        raise ValueError(
            f"--resume takes no {given[0].replace('_', '-')}: the run's config.toml holds it"
        )
    folder = RunFolder(arguments.resume)
    model, _ = folder.load_checkpoint()
    _, source = folder.read_config()
    if "data" not in source:
        raise ValueError(
            f"{folder.path}: config.toml names no data; resume the run with the program that "
            "started it"
        )
    trainer = methods.resumed_trainer(folder, threads=arguments.threads)
    return _with_data(folder, model, trainer, source)


def _with_data(folder: RunFolder, model: Model, trainer: Trainer, source: dict[str, Any]) -> Job:
    where = DataSource.from_config(source)
    data, valid = where.load_splits(model, limit=source["limit"], valid_limit=source["valid_limit"])
    crc = checksum(data)
    if source.get("data_crc32", crc) != crc:
        raise ValueError(
            f"{where.data}: the training images are no longer those that the run in "
            f"{folder.path} began with; restore them or start another run"
        )
    return Job(folder, model, trainer, {**source, "data_crc32": crc}, data, valid)


def _describe(job: Job, schedule: Schedule, output: Output) -> None:
    where = DataSource.from_config(job.source)
    names = _layer_names(job)
    held_out = f"{len(job.valid):,} test images" if job.valid else "no separate test images"
    options = job.trainer.options
    output.text(f"model   {job.source['model']}")
    output.text(f"data    {where.description('train')}: {len(job.data):,} training, {held_out}")
    if job.valid and where.description("test") != where.description("train"):
        output.text(f"test    {where.description('test')}")
    output.text(f"layers  {options.layers}: {printable(', '.join(names))}")
    steps = f"{options.epochs} epochs of {schedule.steps_per_epoch} steps"
    if options.macs > 0:
        steps = f"{schedule.steps} steps within a budget of {options.macs:,} MACs"
    output.text(f"steps   {steps} of {options.batch} images{_queries(options)}")


def _queries(options: RunOptions) -> str:
    if not isinstance(options, TrainingOptions):
        return ""
    return f", {options.queries} queries for each image and layer"


def _layer_names(job: Job) -> list[str]:
    chosen = job.model.select_layers(job.trainer.options.layers)
    return [layer.name for layer in job.model.layers if layer.index in chosen]


def _report(job: Job, result: RunResult, output: Output) -> None:
    last = result.epochs[-1]
    before = _measured(result.before)
    after = _measured(last)
    if before and after:
        output.text(
            f"accuracy {before['accuracy']:.4f} -> {after['accuracy']:.4f}, "
            f"loss {before['loss']:.4f} -> {after['loss']:.4f} on the test images"
        )
    output.text(
        f"{last['forwards']:,} perturbed forwards, {last['macs'] / 1e9:,.1f} GMAC in all, "
        f"{duration(last['seconds'])}"
    )
    output.text(f"the model is {job.folder.checkpoint}")
    output.figures(
        {
            "before": before,
            "after": after,
            "epochs": result.epochs,
            "forwards": last["forwards"],
            "macs": last["macs"],
            "seconds": last["seconds"],
            "model": str(job.folder.checkpoint),
            "layers": _layer_names(job),
            "options": dataclasses.asdict(job.trainer.options),
            "source": job.source,
        }
    )


def _measured(record: dict[str, Any]) -> dict[str, float] | None:
    if "valid_accuracy" not in record:
        return None
    return {"accuracy": record["valid_accuracy"], "loss": record["valid_loss"]}
