"""``pmt train``: adapt a model, in a run folder that can be resumed."""

import argparse
import shlex
from collections.abc import Sequence

from pmt import methods
from pmt._util.progress import duration
from pmt._util.text import counted, printable
from pmt.cli.arguments import (
    add_data,
    add_integer,
    add_layers,
    add_method,
    add_model,
    add_plugin,
    add_threads,
    add_training_options,
    chosen_trainer,
    data_source,
    given_options,
    importer_options,
)
from pmt.cli.output import EXIT_INTERRUPTED, EpochLines, Output, complain
from pmt.cli.typed_names import typed_name
from pmt.methods import Adaptation, AdaptationResult
from pmt.train.options import TrainingOptions
from pmt.train.prepare.preparation import without_head
from pmt.train.run.head import may_choose_cross_fit

USAGE = """\
pmt train MODEL --data DIR [--corruption NAME] --out RUN [options]
       pmt train --resume RUN"""
SUMMARY = "adapt a model to data, with forward passes only"
DESCRIPTION = """\
Train layers of a model on the train split. A part of it is held out: the model ends in the state
that is best on that part, even if that is the original model. The test split, corrupted with
another seed, is only measured: nothing is chosen on it. Ctrl-C leaves a checkpoint; the same
command, or --resume, continues from there, bit for bit."""


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
        "--resume", metavar="RUN", help="continue a run; everything else is in its config.toml"
    )
    add_layers(parser)
    add_data(parser, required=False)
    for name, what in (("--limit", "training images"), ("--valid-limit", "test images")):
        add_integer(parser, f"{name} N", f"at most N {what}, always the same ones", otherwise="all")
    add_method(parser)
    add_plugin(parser)
    add_training_options(parser)
    add_threads(parser)


# Besides the options of the trainer, what a run's config.toml holds.
_KEPT = (
    *("model", "data", "out", "method", "preset", "set", "corruption", "severity", "limit"),
    *("valid_limit", "coarse_labels", "constants", "class_names", "groups", "corruption_seed"),
    *("classes", "resolution", "input_mean", "input_std"),
)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    if arguments.resume is None:
        adaptation = _opened(arguments)
    else:
        _check_resumed(arguments)
        adaptation = methods.resume_run(arguments.resume, threads=arguments.threads)
    notes = adaptation.notes
    _describe(adaptation, notes, output)
    lines = EpochLines(adaptation.folder, adaptation.schedule, output, adaptation.unmeasured)
    try:
        result = adaptation.fit(lines.after_step, [lines.plan])
    except KeyboardInterrupt:
        lines.stop()
        plugins = [f"--plugin={plugin}" for plugin in arguments.plugin or ()]
        command = shlex.join(["pmt", "train", "--resume", str(adaptation.folder.path), *plugins])
        complain(f"interrupted; continue with: {command}")
        return EXIT_INTERRUPTED
    lines.finish()
    _report(result, notes, output)
    return 0


def _opened(arguments: argparse.Namespace) -> Adaptation:
    for name in ("model", "data", "out"):
        if getattr(arguments, name) is None:
            shown = "MODEL" if name == "model" else f"--{name}"
            raise ValueError(f"{shown} is missing; see `pmt train --help`")
    run = methods.open_run(
        model=arguments.model,
        trainer=chosen_trainer(arguments),
        data=data_source(arguments),
        out=arguments.out,
        limit=arguments.limit or 0,
        valid_limit=arguments.valid_limit or 0,
        importer=importer_options(arguments),
    )
    if run.data.is_labeled:
        return run
    if "preparation" not in given_options(arguments):
        preparation = getattr(run.trainer.options, "preparation", "none")
        if preparation != without_head(preparation):
            run.trainer.set_params(preparation=without_head(preparation))
    run.trainer.check_data(run.model, run.data)
    return run


def _check_resumed(arguments: argparse.Namespace) -> None:
    kept = [name for name in _KEPT if getattr(arguments, name) is not None]
    given = [*given_options(arguments), *kept]
    if given:
        raise ValueError(
            f"--resume takes no {typed_name(vars(arguments), given[0])}: the run's config.toml "
            "holds it"
        )


def _describe(run: Adaptation, notes: Sequence[str], output: Output) -> None:
    where, options, schedule = run.data_source, run.trainer.options, run.schedule
    held_out = counted(len(run.valid), "test image") if run.valid else "no separate test images"
    output.text(f"model   {run.source['model']}")
    output.text(f"data    {where.description('train')}: {len(run.data):,} training, {held_out}")
    if run.valid and where.description("test") != where.description("train"):
        output.text(f"test    {where.description('test')}")
    output.text(f"layers  {options.layers}: {printable(', '.join(run.layers))}")
    of_epoch = counted(schedule.steps_per_epoch, "step")
    steps = f"{counted(options.epochs, 'epoch')} of {of_epoch}"
    budget = ""
    if options.macs > 0:
        # Heads between them may be chosen after the preparation.
        trained = len(run.data) - run.held_out
        most = "up to " if may_choose_cross_fit(run.trainer, run.model, trained) else ""
        steps = f"{most}{counted(schedule.steps, 'step')}"
        budget = f"; all that a budget of {options.macs:,} MACs has room for"
    own = run.trainer.extensions.get("estimator")
    queries = f", gradients by {printable(own.rpartition(' ')[0])}" if own else ""
    if not own and isinstance(options, TrainingOptions):
        queries = f", {counted(options.queries, 'query', 'queries')} for each image and layer"
    output.text(f"steps   {steps} of {counted(options.batch, 'image')}{queries}{budget}")
    if run.held_out:
        output.text(
            f"choice  {run.held_out:,} of the training images choose the state that is kept "
            f"({run.held_out:,} forwards each); --no-keep-best trains on all"
        )
    for note in notes:
        output.text(note)


def _report(done: AdaptationResult, told: Sequence[str], output: Output) -> None:
    before, after, last = done.before, done.after, done.last
    if before and after:
        output.text(
            f"accuracy {before['accuracy']:.4f} -> {after['accuracy']:.4f}, "
            f"loss {before['loss']:.4f} -> {after['loss']:.4f} on the test images"
        )
    output.text(
        f"{last['forwards']:,} perturbed forwards, {last['macs'] / 1e9:,.1f} GMAC in all, "
        f"{duration(last['seconds'])}"
    )
    if verdict := done.result.verdict():
        output.text(verdict)
    for note in done.result.notes:
        if note not in told:
            output.text(note)
    output.text(f"the model is {done.run.folder.trained}")
    output.figures(done.to_json())
