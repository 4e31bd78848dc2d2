"""Time of a training step, against the forwards it is made of."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pmt.model import Model
from pmt.research.benchmark.forward import random_images
from pmt.research.benchmark.machine import Machine
from pmt.research.benchmark.timing import take_turns
from pmt.train.options import TrainingOptions
from pmt.train.trainer import Cost, ZOTrainer

__all__ = ["StepTime", "time_steps", "training_step"]


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
    core = trainer.stepper(copy, options.batch).core
    images = random_images(model, options.batch)
    labels = np.random.default_rng(1).integers(0, model.classes, options.batch)
    step = functools.partial(core.step, images, labels, 0, options.learning_rate)
    return step, trainer.cost(copy)
