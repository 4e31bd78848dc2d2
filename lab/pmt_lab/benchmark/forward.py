"""Time of the forward pass and of a training step: in all, and op by op; records for JSON."""

import functools
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import Cost, _core
from pmt.model import Model
from pmt.train.options import TrainingOptions
from pmt.train.zo_trainer import ZOTrainer
from pmt_lab.benchmark.timing import Machine, take_turns

Record = Mapping[str, Any]

_WINDOWED = ("conv2d", "depthwise_conv2d", "average_pool", "max_pool")


def random_images(model: Model, count: int, seed: int = 0) -> npt.NDArray[np.int8]:
    """Return random int8 input of a model; the time does not depend on the pixels."""
    rng = np.random.default_rng(seed)
    return rng.integers(-128, 128, (count, *model.input_shape), dtype=np.int8)


def time_forwards(
    model: Model, machine: Machine, *, images: Sequence[int], repeat: int
) -> list[dict[str, Any]]:
    """Time the forward of every number of images, with every number of threads of the peak.

    A record has microseconds per image, 10^9 MACs per second and the share of the peak (0..1).
    """
    times = []
    for count in images:
        batch = random_images(model, count)
        for threads, peak in machine.peak_gmacs.items():
            forward = functools.partial(model.core.logits, batch, threads)
            seconds = take_turns({"forward": forward}, repeat=repeat)["forward"]
            gmacs = model.macs * count / seconds / 1e9
            record = {"images": count, "threads": threads, "microseconds": seconds / count * 1e6}
            times.append({**record, "gmacs": gmacs, "share": gmacs / peak})
    return times


def profile(model: Model, *, images: Sequence[int], repeat: int) -> list[dict[str, Any]]:
    """Time every op on one thread; medians of ``repeat``.

    A record has ``microseconds`` per image and ``gmacs`` by the number of images at once;
    ``window`` is the kernel's height and width and the stride, where there is one.
    """
    medians: dict[int, list[float]] = {}
    for count in images:
        profiler = _core.Profiler(model.core, random_images(model, count))
        profiler.time_ops()
        rounds = [profiler.time_ops() for _ in range(repeat)]
        medians[count] = [statistics.median(times) * 1e6 for times in zip(*rounds, strict=True)]
    tensors = model.core.tensors()
    found = []
    for i, op in enumerate(model.core.ops()):
        source, out = tensors[op["inputs"][0]], tensors[op["output"]]
        kernel, stride = op["kernel"], op["stride"]
        labels = {
            "name": op["name"],
            "kind": op["kind"],
            "group": group_of(op["kind"], kernel, source["channels"]),
            "window": f"{kernel[0]}x{kernel[1]}/{stride[0]}" if op["kind"] in _WINDOWED else "",
            "shape": f"{_shape(source)} > {_shape(out)}",
        }
        times = {count: each[i] for count, each in medians.items()}
        found.append({**labels, **speeds(int(op["macs"]), times)})
    return found


def speeds(macs: int, microseconds: Mapping[int, float]) -> dict[str, Any]:
    """Return the work of an op, its times by number of images, and its 10^9 MACs per second."""
    gmacs = {count: macs / time / 1e3 for count, time in microseconds.items()}
    return {"macs": macs, "microseconds": dict(microseconds), "gmacs": gmacs}


def group_of(kind: str, kernel: tuple[int, int], channels: int) -> str:
    """Return the group of an op whose members have the same inner loop."""
    if kind == "depthwise_conv2d":
        return f"depthwise {kernel[0]}x{kernel[1]}"
    if kind == "conv2d" and kernel == (1, 1):
        return "pointwise"
    if kind == "conv2d":
        return f"conv2d {kernel[0]}x{kernel[1]}" + (" first" if channels <= 4 else "")
    return kind


def totals(ops: Sequence[Record]) -> list[dict[str, Any]]:
    """Add up the ops of each group, and all of them."""
    groups = {op["group"]: [one for one in ops if one["group"] == op["group"]] for op in ops}
    return [_sum(name, members) for name, members in {**groups, "all ops": ops}.items()]


def _sum(name: str, ops: Sequence[Record]) -> dict[str, Any]:
    counts = ops[0]["microseconds"]
    times = {count: sum(op["microseconds"][count] for op in ops) for count in counts}
    return {"name": name, **speeds(sum(op["macs"] for op in ops), times)}


def _shape(tensor: dict[str, int]) -> str:
    return f"{tensor['height']}x{tensor['width']}x{tensor['channels']}"


def time_steps(
    model: Model, machine: Machine, options: TrainingOptions, *, rules: Sequence[str], repeat: int
) -> list[dict[str, Any]]:
    """Time the step of every rule, with every number of threads of the peak.

    Forward and steps take turns; the steps train a copy of the model. ``overhead`` is a step's time
    over that of its MACs at the speed of the forward (as many images, as many threads, the same
    run).
    """
    images = random_images(model, options.batch)
    chosen = {"layers": options.layers, "batch": options.batch, "queries": options.queries}
    times = []
    for threads in machine.peak_gmacs:
        functions: dict[str, Callable[[], object]] = {
            "forward": functools.partial(model.core.logits, images, threads)
        }
        costs = {}
        for rule in rules:
            functions[rule], costs[rule] = training_step(model, options.replace(rule=rule), threads)
        seconds = take_turns(functions, repeat=repeat)
        speed = model.macs * options.batch / seconds["forward"]
        for rule, cost in costs.items():
            record = {"rule": rule, "threads": threads, "seconds": seconds[rule]}
            work = {"forwards": cost.forwards, "macs": cost.macs}
            rate = {
                "gmacs": cost.macs / seconds[rule] / 1e9,
                "overhead": seconds[rule] / (cost.macs / speed),
            }
            times.append({**chosen, **record, **work, **rate})
    return times


def training_step(
    model: Model, options: TrainingOptions, threads: int
) -> tuple[Callable[[], object], Cost]:
    """Return a step on random images, which trains a copy of the model, and its cost."""
    copy = model.copy()
    trainer = ZOTrainer(options, threads=threads)
    stepper = trainer.stepper(copy, options.batch)
    images = random_images(model, options.batch)
    labels = np.random.default_rng(1).integers(0, model.classes, options.batch)
    step = functools.partial(stepper.step, images, labels, 0, options.learning_rate)
    return step, trainer.cost(copy)
