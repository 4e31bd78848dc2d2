r"""From the paper's printed settings to those that its authors released, one switch at a time.

    python benchmarks/released_settings.py --data DATA --out runs/released --epochs 5
    python benchmarks/released_settings.py --data DATA --out runs/full --epochs 50 --seeds 1 2 3 \
        --settings "images enlarged by 1.15" "stochastic rounding"

DATA holds the folder cifar-10-batches-bin. Every row has the switches of the rows above it; those
with stochastic rounding are as released but for what they name. The bundled cifar10_mcunet is
trained on 1,000 corrupted images that it has never seen, in batches of 100, and tested on 900; the
paper's 50 epochs are the whole budget, 5 a tenth of it. Five states, after equal numbers of steps,
are measured: the last, and the one with the best accuracy on 100 further images. A stopped run
continues.

    python benchmarks/released_settings.py --table results/released-settings.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import pmt
from pmt._util.text import table
from pmt.callbacks import Callback, StepEnd
from pmt.protocol import ImagePool, Split, split
from pmt_lab.augmentation import center_crop, random_views
from pmt_lab.files import write_text
from pmt_lab.kept_benchmark import run_benchmark
from pmt_lab.sweep.images import at_size, pools

BATCH = 100
STATES = 5
SIZE, ENLARGED = 128, 147
Pools = tuple[ImagePool, ImagePool]
PRINTED: dict[str, Any] = {"layers": "B2,head", "generator": "philox"}


# The options that each switch takes from the preset ``released``.
SWITCHES = {
    "rate 0.0039": ("learning_rate",),
    "50 queries": ("queries",),
    "head frozen": (),
    "weights in b4 and b5, nodes in b6 and b7": ("node_dimension", "node_ratio"),
    "free nodes": ("nodes",),
    "nodes by 5 steps": ("mu_node",),
    "biases by 100 steps": ("mu_bias",),
    "weights and biases apart": ("separate_biases",),
    "factor of a tensor's own directions": ("gradient_norm_scaling",),
}


@dataclass(frozen=True)
class Setting:
    """Options beside those of the preset ``paper``, and the preparation of images."""

    options: dict[str, Any]
    augmented: bool = False
    enlarged: bool = False


def settings() -> dict[str, Setting]:
    """Return the settings by name, each switch with those before."""
    options = dict(PRINTED)
    found = {"as printed": Setting(options)}
    for name, switched in SWITCHES.items():
        options = {**options, **{option: pmt.PRESETS["released"][option] for option in switched}}
        if name == "head frozen":
            options["layers"] = "B2"
        found[name] = Setting(options)
    rounding = {**options, "rounding": "stochastic"}
    return {
        **found,
        "augmented": Setting(options, augmented=True),
        "images enlarged by 1.15": Setting(options, augmented=True, enlarged=True),
        "nodes alone, not augmented": Setting({**options, "rule": "node"}),
        "stochastic rounding, not augmented": Setting(rounding),
        "stochastic rounding": Setting(rounding, augmented=True, enlarged=True),
        "stochastic rounding, nodes alone, not augmented": Setting({**rounding, "rule": "node"}),
        "stochastic rounding, factor as printed, not augmented": Setting(
            {**rounding, "gradient_norm_scaling": pmt.PRESETS["paper"]["gradient_norm_scaling"]}
        ),
    }


class States(Callback):
    """Measures a model after equal numbers of steps; a continued run goes on with the file."""

    def __init__(self, path: Path, measure: Callable[[], dict[str, float]]) -> None:
        self.path = path
        self.measure = measure
        self.found = json.loads(path.read_text()) if path.is_file() else {}

    def on_step(self, event: StepEnd) -> None:
        """Measure where a share of the steps is done."""
        if event.step % (event.steps // STATES) == 0:
            self.found[str(event.step)] = self.measure()
            write_text(self.path, json.dumps(self.found))


def image_pools(data: Path, corruption: str, model: pmt.Model) -> Pools:
    """Return the training and the test images."""
    source = {
        "path": str(data / "cifar-10-batches-bin"),
        "corruption_seed": 0,
        "coarse_labels": False,
        "constants": "cifar10",
    }
    return pools(source, corruption, 5, model)


def chosen_images(pair: Pools) -> Split:
    """Return 1,000 images to train on, 100 that are held out and 900 to test on."""
    return split("default", *pair, seed=0, images=1100, held_out=100, test_images=900)


def row_of(
    name: str, corruption: str, seed: int, epochs: int, data: Path, out: Path, threads: int
) -> dict[str, Any]:
    """Return the accuracies of a setting's states."""
    setting = settings()[name]
    model = pmt.load("cifar10_mcunet")
    images = chosen_images(image_pools(data, corruption, model))
    assert images.held_out is not None
    resized = partial(at_size, model=model)
    if setting.enlarged:
        resized = partial(center_crop, size=SIZE, enlarged=ENLARGED)
    held_out, tested = resized(images.held_out), resized(images.test)
    shown, passes = at_size(images.train, model), epochs
    if setting.augmented:
        shown, passes = random_views(images.train, SIZE, epochs, seed), 1
    folder = out / f"run-{row_name(name, corruption, seed, epochs)}"

    def measure() -> dict[str, float]:
        parts = {"held_out": held_out, "test": tested}
        return {k: model.evaluate(d, threads=threads).accuracy for k, d in parts.items()}

    folder.parent.mkdir(parents=True, exist_ok=True)
    states = States(folder.with_suffix(".states.json"), measure)
    options = {**setting.options, "batch": BATCH, "seed": seed, "epochs": passes}
    trainer = pmt.ZOTrainer(pmt.preset("paper", **options), threads=threads)
    start = model.evaluate(tested, threads=threads).accuracy
    result = trainer.fit(model, shown, out=folder, progress=False, callbacks=[states])
    found = sorted(states.found.items(), key=lambda item: int(item[0]))
    return {
        "setting": name,
        "corruption": corruption,
        "seed": seed,
        "epochs": epochs,
        "start": start,
        "forwards": result.epochs[-1]["forwards"],
        "steps": [int(step) for step, _ in found],
        "held_out": [state["held_out"] for _, state in found],
        "test": [state["test"] for _, state in found],
    }


def row_name(name: str, corruption: str, seed: int, epochs: int) -> str:
    """Return the name of a row's files."""
    return f"{corruption}-{name.replace(' ', '_').replace(',', '')}-{epochs}-{seed}"


def table_of(found: list[dict[str, Any]]) -> str:
    """Return the table of rows of one corruption and budget: means over the seeds."""
    rows = []
    for name in dict.fromkeys(row["setting"] for row in found):
        own = [row for row in found if row["setting"] == name]
        last = [100 * row["test"][-1] for row in own]
        chosen = [100 * row["test"][int(np.argmax(row["held_out"]))] for row in own]
        each = ", ".join(f"{value:.1f}" for value in last)
        forwards = f"{own[0]['forwards'] / 1e6:.1f}"
        rows.append([name, forwards, f"{np.mean(last):.1f}", each, f"{np.mean(chosen):.1f}"])
    titles = ["setting", "million forwards", "last state", "by seed", "chosen state"]
    return table(titles, rows, left=("setting", "by seed"))


def tables_of(found: list[dict[str, Any]]) -> str:
    """Return a table for each corruption and budget."""
    keys = dict.fromkeys((row["corruption"], row["epochs"]) for row in found)
    parts = []
    for corruption, epochs in keys:
        own = [r for r in found if (r["corruption"], r["epochs"]) == (corruption, epochs)]
        start = f"{100 * own[0]['start']:.1f}"
        parts.append(f"{corruption}, {epochs} epochs, {start} before\n{table_of(own)}")
    return "\n\n".join(parts)


def rows_by_name(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the function for each row."""
    cases = [
        (name, corruption, seed, arguments.epochs)
        for corruption in arguments.corruptions
        for seed in arguments.seeds
        for name in arguments.settings
    ]
    more = (arguments.data, arguments.out, arguments.threads)
    return {row_name(*case): partial(row_of, *case, *more) for case in cases}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which cases are run."""
    names = list(settings())
    parser.add_argument("--settings", nargs="+", default=names, choices=names, metavar="NAME")
    parser.add_argument("--corruptions", nargs="+", default=["gaussian_noise"], metavar="NAME")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0, help="0 takes all")


def main() -> None:
    """Run the missing rows and print the tables."""
    run_benchmark(__doc__, rows_by_name, tables_of, add_arguments)


if __name__ == "__main__":
    main()
