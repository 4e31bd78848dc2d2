"""``pmt demo``: the bundled int8 model learns foggy images from its forward passes alone.

The images of the test split, which the model is measured on, are never trained on.
"""

import argparse
import dataclasses
import tempfile
from pathlib import Path

from pmt import corruptions, methods
from pmt._util.progress import duration
from pmt._util.text import table
from pmt.cli.arguments import add_threads
from pmt.cli.output import EpochLines, Output
from pmt.datasets import Dataset, bundled
from pmt.errors import ExistingFileError
from pmt.model import Evaluation, Model
from pmt.model.loading import load
from pmt.plots import save_plot
from pmt.train.costs.memory import arena_bytes
from pmt.train.run.folder import RunFolder
from pmt.train.run.result import RunResult
from pmt.train.zo_trainer import ZOTrainer

USAGE = "pmt demo [--out RUN] [--json PATH]"
SUMMARY = "adapt the bundled network to foggy images, in seconds"
DESCRIPTION = """\
Adapt the bundled fashion_mnist_dscnn to fog, with the bundled images: no file is needed. The
accuracy before and after is printed, and what each part of the training has gained. With --out the
run is kept, and its curves where matplotlib is installed; the same command continues one that was
interrupted."""

_MODEL, _CORRUPTION, _SEVERITY = "fashion_mnist_dscnn", "fog", 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--out", metavar="RUN", help="folder for the run")
    add_threads(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    if arguments.out is not None:
        _check_place(RunFolder(arguments.out))
    with tempfile.TemporaryDirectory() as aside:
        folder = RunFolder(arguments.out or Path(aside) / "run")
        result = _adapt(folder, arguments.threads, output)
        if arguments.out is not None:
            output.text(f"\nthe run is in {folder.path}{_curves(result, folder)}")
    return 0


def _check_place(folder: RunFolder) -> None:
    """Raise FileExistsError unless the folder is missing or empty, or holds a run to continue."""
    if folder.done:
        raise ExistingFileError(
            f"out={str(folder.path)!r} holds a finished run; choose another folder or remove it"
        )
    if not folder.exists():
        folder.check_free()


def _adapt(folder: RunFolder, threads: int, output: Output) -> RunResult:
    model, clean = load(_MODEL), bundled("test")
    train = corruptions.corrupt(bundled("train"), _CORRUPTION, _SEVERITY, seed=1)
    test = corruptions.corrupt(clean, _CORRUPTION, _SEVERITY, seed=2)
    trainer = ZOTrainer(layers="all", epochs=4, threads=threads)
    output.text(str(model))
    output.text(
        f"{_CORRUPTION}, severity {_SEVERITY}: {len(train):,} training and {len(test):,} test "
        f"images\ntraining {trainer.options.layers}, {trainer.options.queries} queries\n"
    )
    sets = {"clean": clean, _CORRUPTION: test}
    before = _measured(model, sets, threads)
    alone = model.copy()
    methods.trainer("preparation_only", threads=threads).fit(alone, train, progress=False)
    result = _fit(trainer, model, train, test, folder, output)
    after = _measured(model, sets, threads)
    head_alone = alone.evaluate(test, threads=threads)
    output.text(_outcome(before, after))
    output.text(_attribution(result, head_alone))
    output.text(_cost(trainer, model, result))
    output.figures(
        {
            "before": {name: dataclasses.asdict(one) for name, one in before.items()},
            "after": {name: dataclasses.asdict(one) for name, one in after.items()},
            "head_alone": dataclasses.asdict(head_alone),
        }
    )
    return result


def _measured(model: Model, sets: dict[str, Dataset], threads: int) -> dict[str, Evaluation]:
    return {name: model.evaluate(data, threads=threads) for name, data in sets.items()}


def _fit(
    trainer: ZOTrainer,
    model: Model,
    train: Dataset,
    test: Dataset,
    folder: RunFolder,
    output: Output,
) -> RunResult:
    lines = EpochLines(folder, trainer.schedule_on(model, train), output)
    result = trainer.fit(model, train, valid=test, out=folder, progress=lines.after_step)
    lines.finish()
    output.text(result.verdict())
    return result


def _outcome(before: dict[str, Evaluation], after: dict[str, Evaluation]) -> str:
    rows = []
    for name, old in before.items():
        new = after[name]
        rows.append([f"{name} accuracy", f"{old.accuracy:.1%}", f"{new.accuracy:.1%}"])
        rows.append([f"{name} loss", f"{old.loss:.3f}", f"{new.loss:.3f}"])
    return "\n" + table(["test images", "before", "after"], rows, left=("test images",))


def _attribution(result: RunResult, alone: Evaluation) -> str:
    """Return the gain of each part on the foggy test images, and the result without forwards."""
    states = [*result.phases, result.kept, result.refit]
    start, head, kept, refit = (100 * state["valid_accuracy"] for state in states if state)
    return (
        f"\npoints of accuracy: {head - start:+.1f} by the exact head, {kept - head:+.1f} by "
        f"perturbed forwards, {refit - kept:+.1f} by the head on all images\n"
        f"without perturbed forwards, the exact head on all images: {alone.accuracy:.1%}"
    )


def _cost(trainer: ZOTrainer, model: Model, result: RunResult) -> str:
    last = result.epochs[-1]
    options = trainer.options
    layers = model.select_layers(options.layers)
    arena = arena_bytes(model.core, options.to_core(), layers, options.batch)
    return (
        f"\n{last['forwards']:,} perturbed forwards, {last['macs'] / 1e9:.0f} billion "
        f"multiply-accumulates, {duration(last['seconds'])}\n"
        f"{arena:,} bytes of memory to train in on a microcontroller"
    )


def _curves(result: RunResult, folder: RunFolder) -> str:
    try:
        axes = result.plot(valid="test images")
    except ImportError:
        return ""
    save_plot(axes, folder.path / "curves.png", dpi=150)
    return ", its curves in curves.png"
