r"""Whether the default ever ends below its start, on 24 tasks.

    python benchmarks/never_worse.py --data DATA --models MODELS --out runs/never_worse

DATA holds the folders cifar-10-batches-bin, food10 and cub100, MODELS the files
resnet8_cifar10_int8.tflite and mcunet-5fps.pkl. Four networks, each on mirrored clean images,
noise, blur, JPEG (severity 3), classes that it has never seen, and only 60 images; three seeds.
The tasks chose only the rule that keeps a state and how long the head is trained. All other options
of the default were chosen on the CIFAR-10 MCUNet under Gaussian noise, impulse noise and fog and on
clean images, and on ResNet-8 under Gaussian noise and JPEG of severity 5 and on clean images.

Every run ends after the same multiply-accumulates. Each seed holds other images out and draws other
perturbations. "alone" is the preparation, on all the training images, with none held out. Each
difference has the standard error of the differences image by image; both are means over the seeds.
A stopped run continues: finished runs are read from the folder. The table of the page comes from
lab/results/never-worse.json, which --results writes:

    python benchmarks/never_worse.py --table results/never-worse.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import pmt
from pmt import corruptions, datasets, methods
from pmt._util.text import table
from pmt.datasets import Dataset
from pmt_lab.files import write_text
from pmt_lab.sweep import pack, unpack

SEEDS = (1, 2, 3)
SEVERITY = 3
MACS = 300_000_000_000
FEW = 60
SHIFTS = {"noise": "shot_noise", "blur": "glass_blur", "JPEG": "jpeg_compression"}
TASKS = ("clean", *SHIFTS, "new classes", "few images")
Pair = tuple[Dataset, Dataset]


class Networks:
    """The networks and their images, by name."""

    def __init__(self, data: Path, models: Path) -> None:
        self.data = data
        self.loaders: dict[str, Callable[[], pmt.Model]] = {
            "fashion_mnist_dscnn": lambda: pmt.load("fashion_mnist_dscnn"),
            "cifar10_small": lambda: pmt.load("cifar10_small"),
            "ResNet-8": lambda: pmt.load(models / "resnet8_cifar10_int8.tflite"),
            "mcunet-5fps": lambda: pmt.load(models / "mcunet-5fps.pkl", classes=10),
            "mcunet-5fps, new classes": lambda: pmt.load(models / "mcunet-5fps.pkl", classes=100),
        }

    def load(self, name: str, task: str) -> pmt.Model:
        """Return a network, that of a task with other classes with a head for them."""
        other = f"{name}, {task}"
        return self.loaders[other if other in self.loaders else name]()

    def images(self, name: str, task: str) -> Pair:
        """Return training and test images of a task."""
        if task == "new classes":
            return self._other_classes(name)
        train, test = self._own(name)
        if task in SHIFTS:
            kind = SHIFTS[task]
            return (
                corruptions.corrupt(train, kind, SEVERITY, seed=11),
                corruptions.corrupt(test, kind, SEVERITY, seed=12),
            )
        if task == "few images":
            train = train.split(FEW / len(train), seed=0)[0]
        return mirrored(train), mirrored(test)

    @cache  # noqa: B019 - one object in a process
    def _own(self, name: str) -> Pair:
        if name == "fashion_mnist_dscnn":
            return datasets.bundled("train"), datasets.bundled("test")
        if name == "mcunet-5fps":
            return self._read("food10", 128, 600)
        return self._read("cifar-10-batches-bin", 32, 1000)

    def _other_classes(self, name: str) -> Pair:
        if name == "mcunet-5fps":
            return self._read("cub100", 128, 1000)
        if name == "fashion_mnist_dscnn":
            return tuple(gray(part) for part in self._read("cifar-10-batches-bin", 28, 1000))
        return self._read("food10", 32, 600)

    def _read(self, folder: str, size: int, images: int) -> Pair:
        train, test = (
            datasets.load(self.data / folder, split=split, size=size, limit=limit)
            for split, limit in (("train", images), ("test", 1000))
        )
        return train, test


def mirrored(data: Dataset) -> Dataset:
    """Turn images left to right: nothing is gained by training on them."""
    return replace(data, images=np.ascontiguousarray(data.images[:, :, ::-1]))


def gray(data: Dataset) -> Dataset:
    """Average the colors."""
    mean = data.images.mean(axis=3, keepdims=True).round().astype(np.uint8)
    return replace(data, images=mean)


def run(networks: Networks, name: str, task: str, seed: int, threads: int) -> dict[str, Any]:
    """Train once by the default, and once prepare alone; return the reported figures."""
    train, test = networks.images(name, task)
    options = {"seed": seed, "layers": "B3,head" if name == "mcunet-5fps" else "all"}
    if task == "few images":
        options["batch"] = 10
    start, kept, alone = (networks.load(name, task) for _ in range(3))
    trainer = methods.trainer("default", threads=threads, macs=MACS, **options)
    result = trainer.fit(kept, train, valid=test, progress=False)
    options.pop("batch", None)
    only = methods.trainer("preparation_only", threads=threads, **options)
    only.fit(alone, train, progress=False)
    models = {"start": start, "kept": kept, "alone": alone}
    right = {key: model.score_images(test).correct.tolist() for key, model in models.items()}
    return {
        "network": name,
        "task": task,
        "seed": seed,
        "images": len(test),
        "right": {key: pack(np.array(values)) for key, values in right.items()},
        "states": [*result.phases, result.epochs[-1], *filter(None, [result.refit])],
        "verdict": result.verdict(),
        "taken_back": sum(bool(epoch.get("taken_back")) for epoch in result.epochs),
    }


def compact(found: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a run for the table, and how it ended."""
    wanted = ("phase", "epoch", "head_strength", "valid_accuracy", "valid_loss", "macs")
    states = [{key: state[key] for key in wanted if key in state} for state in found["states"]]
    return {**found, "states": states}


def table_of(runs: list[dict[str, Any]]) -> str:
    """Return the table as text."""
    titles = ["network", "task", "start", "aligned", "head", "last epoch", "kept", "alone"]
    return table([*titles, "kept - start", "kept - alone"], rows(runs), left=titles[:2])


def rows(runs: list[dict[str, Any]]) -> list[list[str]]:
    """Return a row a task: accuracies in percent, differences in points."""
    found = []
    for network, task in dict.fromkeys((r["network"], r["task"]) for r in runs):
        own = [r for r in runs if (r["network"], r["task"]) == (network, task)]
        right = {key: mean_right(own, key) for key in ("start", "kept", "alone")}
        phases = {state.get("phase", "last"): state for r in own for state in r["states"]}
        found.append(
            [
                network,
                task,
                percent(right["start"].mean()),
                *(accuracy(own, name) if name in phases else "-" for name in ("aligned", "head")),
                accuracy(own, "last"),
                percent(right["kept"].mean()),
                percent(right["alone"].mean()),
                difference(right["kept"], right["start"]),
                difference(right["kept"], right["alone"]),
            ]
        )
    return found


def mean_right(runs: list[dict[str, Any]], key: str) -> npt.NDArray[np.float64]:
    """Return for every test image in which share of the seeds it is right."""
    mean: npt.NDArray[np.float64] = np.mean(
        [unpack(run["right"][key], run["images"]) for run in runs], axis=0
    )
    return mean


def accuracy(runs: list[dict[str, Any]], name: str) -> str:
    """Return the mean accuracy after a phase, or the last epoch."""
    states = [state for r in runs for state in r["states"] if state.get("phase", "last") == name]
    return percent(float(np.mean([state["valid_accuracy"] for state in states])))


def difference(of: npt.NDArray[np.float64], than: npt.NDArray[np.float64]) -> str:
    """Return a difference and its standard error, marked where it is below by more than one."""
    pairs = of - than
    mean, error = pairs.mean(), pairs.std(ddof=1) / len(pairs) ** 0.5
    return f"{100 * mean:+.1f} ± {100 * error:.1f}{' below' if mean < -error else ''}"


def percent(share: float) -> str:
    """Return a share with one decimal."""
    return f"{100 * share:.1f}"


def main() -> None:
    """Run the missing rows and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--models", type=Path, help="folder of the model files")
    parser.add_argument("--out", type=Path, help="folder of the figures")
    parser.add_argument("--results", type=Path, help="file that keeps what the table needs")
    parser.add_argument("--table", type=Path, help="run nothing; the table of such a file")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, help="by default 1 2 3")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS, help="by default all")
    parser.add_argument("--threads", type=int, default=0, help="0 takes all")
    arguments = parser.parse_args()
    if arguments.table is not None:
        print(table_of(json.loads(arguments.table.read_text())["runs"]))
        return
    if None in (arguments.data, arguments.models, arguments.out):
        parser.error("--data, --models and --out are needed, or --table alone")
    arguments.out.mkdir(parents=True, exist_ok=True)
    networks = Networks(arguments.data, arguments.models)
    names = [name for name in networks.loaders if "," not in name]
    runs = []
    for seed in arguments.seeds:
        for name in names:
            for task in arguments.tasks:
                path = arguments.out / f"{name}_{task.replace(' ', '_')}_{seed}.json"
                if not path.is_file():
                    found = run(networks, name, task, seed, arguments.threads)
                    write_text(path, json.dumps(found))
                runs.append(json.loads(path.read_text()))
                print(f"{name}, {task}, seed {seed}: {runs[-1]['verdict']}", flush=True)
    print(table_of(runs))
    if arguments.results is not None:
        lines = ",\n".join(json.dumps(compact(found), sort_keys=True) for found in runs)
        write_text(arguments.results, f'{{"runs": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
