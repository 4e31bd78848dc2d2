"""Everything that pmt writes, on small networks: a job each."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cli_files import write_data
from networks import pixels, residual_network
from onnx_networks import Network
from PIL import Image

import pmt
from pmt.cli import main
from pmt.cli.program import describe
from pmt.datasets import Dataset, save_npz
from pmt.train.prepare import measure_statistics, with_statistics

Action = Callable[[Path], int]


def contents(disk: Path) -> dict[str, bytes]:
    """Return all files, but for the seconds that a run took; a folder ends with a slash."""
    found = {}
    for path in sorted(disk.rglob("*")):
        name = path.relative_to(disk).as_posix()
        if path.is_dir():
            found[f"{name}/"] = b""
        else:
            found[name] = _untimed(path) if path.name == "metrics.jsonl" else path.read_bytes()
    return found


def _untimed(metrics: Path) -> bytes:
    whole, _, cut = metrics.read_bytes().rpartition(b"\n")
    records = [json.loads(line) for line in whole.splitlines()]
    kept = [{name: r[name] for name in r if name != "seconds"} for r in records]
    return json.dumps(kept).encode() + cut


@dataclass(frozen=True)
class Job:
    """Work that writes to a disk."""

    name: str  # the command, or the class in Python
    run: Action  # does the work on the disk of a folder and returns the exit status
    # The same with other arguments: output that the job replaces as a whole.
    earlier: Action | None = None
    one_at_a_time: bool = False  # whether a second process is refused while one runs
    result: Callable[[Path], Any] = contents  # reads from the disk's folder what must come out


# `{model}` is another one in what a job replaces.
COMMANDS = {
    "export": "export {model} --data {data} --target qemu-mps2-an500 --steps 2 --out {disk}/fw",
    "convert": "convert {model} {disk}/out.tflite --force",
    "align": "align {model} --data {data} --out {disk}/out.pmt --force",
    "statistics": "statistics {model} --data {data} --out {disk}/out.pmt --force",
    "quantize": "quantize {floats} --calibrate {data} --out {disk}/out.pmt --force",
    "show": "show {data} --out {disk}/sheet.png",
    "eval": "eval {model} --data {data} --json {disk}/figures.json",
    "predict": "predict {model} {photos} --json {disk}/figures.json",
}
TRAIN = (
    "train {model} --data {data} --epochs 2 --batch 8 --queries 2 --layers head --threads 1 "
    "--out {disk}/run"
)


def jobs(inputs: Path) -> list[Job]:
    """Write the inputs of all jobs to a folder, and return the jobs."""
    data = write_data(inputs, train=40, test=12)
    places = {"data": data, "photos": inputs / "photos", "floats": inputs / "float.onnx"}
    models = [inputs / "one.pmt", inputs / "other.pmt"]
    for seed, path in enumerate(models):
        network = residual_network(seed=seed)
        with_statistics(network, measure_statistics(network, pixels(network, 40))).save(path)
    places["photos"].mkdir()
    for number, image in enumerate(pixels(network, 3)):
        Image.fromarray(image).save(places["photos"] / f"{number}.png")
    net = Network()
    net.save(places["floats"], net.head(net.add("Relu", [net.conv("x", 3, 4, pads=[1] * 4)]), 256))

    def command(line: str, model: Path = models[0]) -> Action:
        return lambda disk: main(line.format(model=model, disk=disk, **places).split())

    state = " --preparation none --loss entropy --diversity 0.5"
    return [
        Job("train", command(TRAIN), one_at_a_time=True),
        Job("train with state", command(TRAIN + state), one_at_a_time=True),
        *(Job(name, command(line), command(line, models[1])) for name, line in COMMANDS.items()),
        Job("corrupt", command("corrupt {data} --name contrast,brightness --out {disk}/images")),
        Job("save_npz", _saved(models[0]), _saved(models[1])),
        Job("Learner", _learned, result=_learned_state),
    ]


def _saved(model: Path) -> Action:
    def save(disk: Path) -> int:
        images = pixels(pmt.load(model), 40, seed=len(model.name))
        data = Dataset(images, np.zeros(40, np.int64), ("ant", "bee"), "random")
        return _in_python(lambda: save_npz(data, disk / "data.npz"))

    return save


def _learner(disk: Path) -> pmt.Learner:
    return pmt.Learner(residual_network(), samples=60, storage=disk / "states.bin")


def _learned(disk: Path) -> int:
    """Solve the head for other classes, quarters of a logit, and keep it, unless that is done."""

    def learn() -> None:
        learner = _learner(disk)
        if learner.on_trial:
            learner.confirm()
        if learner.in_force != "original":
            return
        images = pixels(residual_network(), 60)
        order = np.argsort(np.argsort(learner.predict(images).logits[:, 0]))
        learner.observe(images, order // 15)
        learner.learn("head_alone")
        learner.commit()
        learner.confirm()

    return _in_python(learn)


def _learned_state(disk: Path) -> dict[str, object]:
    learner = _learner(disk)
    images = pixels(residual_network(), 3)
    return {
        "files": [path.name for path in disk.iterdir()],
        "in_force": learner.in_force,
        "on_trial": learner.on_trial,
        "logits": learner.predict(images).logits.tolist(),
    }


def _in_python(call: Callable[[], None]) -> int:
    """Call a function; print its error as the program does."""
    try:
        call()
    except (OSError, ValueError) as error:
        print(f"pmt: error: {describe(error)}", file=sys.stderr)
        return 2
    return 0
