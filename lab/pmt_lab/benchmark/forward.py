"""Time of the forward pass and of a training step: in all, and op by op."""

import functools
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pmt import Cost, _core
from pmt.model import Model
from pmt.train.options import TrainingOptions
from pmt.train.zo_trainer import ZOTrainer
from pmt_lab.benchmark.timing import Machine, take_turns


@dataclass(frozen=True)
class ForwardTime:
    """A whole forward: microseconds per image, 10^9 MACs per second, share of the peak (0..1)."""

    images: int
    threads: int
    microseconds: float
    gmacs: float
    share: float


@dataclass(frozen=True)
class OpTimes:
    """One op, or a group of them: microseconds per image by the number of images at once.

    ``window`` is the kernel's height and width and the stride, where there is one.
    """

    name: str
    kind: str
    group: str
    window: str
    shape: str
    macs: int
    microseconds: dict[int, float]

    def gmacs(self, images: int) -> float:
        """Return 10^9 multiply-accumulates per second."""
        return self.macs / self.microseconds[images] / 1e3


def random_images(model: Model, count: int, seed: int = 0) -> npt.NDArray[np.int8]:
    """Return random int8 input of a model; the time does not depend on the pixels."""
    rng = np.random.default_rng(seed)
    return rng.integers(-128, 128, (count, *model.input_shape), dtype=np.int8)


def time_forwards(
    model: Model, machine: Machine, *, images: tuple[int, ...], repeat: int
) -> list[ForwardTime]:
    """Time the forward of every number of images, with every number of threads of the peak."""
    times = []
    for count in images:
        batch = random_images(model, count)
        for threads, peak in machine.peak_gmacs.items():
            forward = functools.partial(model.core.logits, batch, threads)
            seconds = take_turns({"forward": forward}, repeat=repeat)["forward"]
            gmacs = model.macs * count / seconds / 1e9
            times.append(ForwardTime(count, threads, seconds / count * 1e6, gmacs, gmacs / peak))
    return times


def profile(model: Model, *, images: tuple[int, ...], repeat: int) -> list[OpTimes]:
    """Time every op on one thread; medians of ``repeat``."""
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
        windowed = op["kind"] in ("conv2d", "depthwise_conv2d", "average_pool", "max_pool")
        kernel, stride = op["kernel"], op["stride"]
        found.append(
            OpTimes(
                name=op["name"],
                kind=op["kind"],
                group=group_of(op["kind"], kernel, source["channels"]),
                window=f"{kernel[0]}x{kernel[1]}/{stride[0]}" if windowed else "",
                shape=f"{_shape(source)} > {_shape(out)}",
                macs=int(op["macs"]),
                microseconds={count: times[i] for count, times in medians.items()},
            )
        )
    return found


def group_of(kind: str, kernel: tuple[int, int], channels: int) -> str:
    """Return the group of an op whose members have the same inner loop."""
    if kind == "depthwise_conv2d":
        return f"depthwise {kernel[0]}x{kernel[1]}"
    if kind == "conv2d" and kernel == (1, 1):
        return "pointwise"
    if kind == "conv2d":
        return f"conv2d {kernel[0]}x{kernel[1]}" + (" first" if channels <= 4 else "")
    return kind


def totals(ops: list[OpTimes]) -> list[OpTimes]:
    """Add up the ops of each group, and all of them."""
    groups = list(dict.fromkeys(op.group for op in ops))
    members = {name: [op for op in ops if op.group == name] for name in groups}
    return [_sum(name, group) for name, group in members.items()] + [_sum("all ops", ops)]


def _sum(name: str, ops: list[OpTimes]) -> OpTimes:
    counts = ops[0].microseconds
    return OpTimes(
        name=name,
        kind="",
        group=name,
        window="",
        shape="",
        macs=sum(op.macs for op in ops),
        microseconds={count: sum(op.microseconds[count] for op in ops) for count in counts},
    )


def _shape(tensor: dict[str, int]) -> str:
    return f"{tensor['height']}x{tensor['width']}x{tensor['channels']}"


@dataclass(frozen=True)
class StepTime:
    """One training step.

    ``overhead`` is the step's time over that of its MACs at the speed of the forward (as many
    images, as many threads, the same run).
    """

    rule: str
    threads: int
    seconds: float
    forwards: int
    macs: int
    gmacs: float
    overhead: float


def time_steps(
    model: Model, machine: Machine, options: TrainingOptions, *, rules: tuple[str, ...], repeat: int
) -> list[StepTime]:
    """Time the step of every rule, with every number of threads of the peak.

    Forward and steps take turns. The steps train a copy of the model.
    """
    images = random_images(model, options.batch)
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
            times.append(
                StepTime(
                    rule=rule,
                    threads=threads,
                    seconds=seconds[rule],
                    forwards=cost.forwards,
                    macs=cost.macs,
                    gmacs=cost.macs / seconds[rule] / 1e9,
                    overhead=seconds[rule] / (cost.macs / speed),
                )
            )
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
