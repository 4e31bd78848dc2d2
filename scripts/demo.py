"""`make demo`: the bundled int8 model learns foggy images from its forward passes alone.

The images of the test split, which the model is measured on, are never trained on.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pmt
from pmt._util.progress import duration
from pmt.cli.output import EpochLines, Output
from pmt.plots import save_plot
from pmt.train.costs.memory import arena_bytes

CORRUPTION, SEVERITY = "fog", 5
FOLDER = Path("runs/demo")


def main() -> None:
    model = pmt.load("fashion_mnist_dscnn")
    clean = pmt.datasets.bundled("test")
    train = pmt.corruptions.corrupt(pmt.datasets.bundled("train"), CORRUPTION, SEVERITY, seed=1)
    test = pmt.corruptions.corrupt(clean, CORRUPTION, SEVERITY, seed=2)
    trainer = pmt.ZOTrainer(layers="all", epochs=4)
    print(model)
    print(
        f"{CORRUPTION}, severity {SEVERITY}: {len(train):,} training and {len(test):,} test images"
    )
    print(f"training {trainer.options.layers}, {trainer.options.queries} queries\n", flush=True)

    before = [model.evaluate(clean), model.evaluate(test)]
    alone = model.copy()
    pmt.methods.trainer("preparation_only").fit(alone, train, progress=False)
    result = fit(trainer, model, train, test)
    after = [model.evaluate(clean), model.evaluate(test)]

    print_outcome(before, after)
    print_attribution(result, alone.evaluate(test))
    print_cost(trainer, model, result)
    print(f"\nthe run is in {FOLDER}{curves(result)}")


def fit(
    trainer: pmt.ZOTrainer,
    model: pmt.Model,
    train: pmt.datasets.Dataset,
    test: pmt.datasets.Dataset,
) -> pmt.RunResult:
    shutil.rmtree(FOLDER, ignore_errors=True)
    lines = EpochLines(pmt.RunFolder(FOLDER), trainer.schedule_on(model, train), Output(None))
    result = trainer.fit(model, train, valid=test, out=FOLDER, progress=lines.after_step)
    lines.finish()
    print(result.verdict())
    return result


def print_outcome(before: list[pmt.Evaluation], after: list[pmt.Evaluation]) -> None:
    print(f"\n{'test images':<16}{'before':>16}{'after':>16}")
    for name, old, new in zip(("clean", CORRUPTION), before, after, strict=True):
        print(f"{name + ' accuracy':<24}{old.accuracy:>8.1%}{new.accuracy:>16.1%}")
        print(f"{name + ' loss':<24}{old.loss:>8.3f}{new.loss:>16.3f}")


def print_attribution(result: pmt.RunResult, alone: pmt.Evaluation) -> None:
    """Print the gain of each part on the foggy test images, and the result without forwards."""
    states = [*result.phases, result.kept, result.refit]
    start, head, kept, refit = (100 * state["valid_accuracy"] for state in states)
    print(
        f"\npoints of accuracy: {head - start:+.1f} by the exact head, {kept - head:+.1f} by "
        f"perturbed forwards, {refit - kept:+.1f} by the head on all images\n"
        f"without perturbed forwards, the exact head on all images: {alone.accuracy:.1%}"
    )


def print_cost(trainer: pmt.ZOTrainer, model: pmt.Model, result: pmt.RunResult) -> None:
    last = result.epochs[-1]
    options = trainer.options
    layers = model.select_layers(options.layers)
    arena = arena_bytes(model.core, options.to_core(), layers, options.batch)
    print(
        f"\n{last['forwards']:,} perturbed forwards, {last['macs'] / 1e9:.0f} billion "
        f"multiply-accumulates, {duration(last['seconds'])}\n"
        f"{arena:,} bytes of memory to train in on a microcontroller"
    )


def curves(result: pmt.RunResult) -> str:
    try:
        axes = result.plot(valid="test images")
    except ImportError:
        return ""
    save_plot(axes, FOLDER / "curves.png", dpi=150)
    return ", its curves in curves.png"


if __name__ == "__main__":
    main()
