"""How long a sweep will take, from what finished runs took and from one short timing."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pmt.model import Model
from pmt.research.sweep.run_spec import RunSpec

__all__ = ["Estimate", "estimate", "evaluation_macs", "forward_speed"]

_SECONDS_OF_A_TIMING = 0.3


@dataclass(frozen=True)
class Estimate:
    """Work that is left: ``runs``, its ``macs``, and ``hours`` on this machine with ``jobs``."""

    runs: int
    macs: int
    hours: float
    jobs: int
    macs_per_second: float


def forward_speed(model: Model, threads: int) -> float:
    """Return the multiply-accumulates a second of the model's forward."""
    generator = np.random.Generator(np.random.PCG64(0))
    images = generator.integers(0, 256, (8, *model.input_shape), dtype=np.uint8)
    model.logits(images, threads=threads)
    count, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < _SECONDS_OF_A_TIMING:
        model.logits(images, threads=threads)
        count += len(images)
    return model.macs * count / elapsed


def evaluation_macs(spec: RunSpec, model: Model, *, held_out: int, test: int) -> int:
    """Return the multiply-accumulates of a run's evaluations.

    Test images count twice, corrupted and clean. That the untrained model is measured once for many
    runs is left out.
    """
    return model.macs * (2 * test + (spec.evaluations + 1) * held_out)


def estimate(
    left: Iterable[RunSpec],
    finished: Iterable[Mapping[str, Any]],
    model: Model,
    *,
    held_out: int,
    test: int,
    jobs: int,
) -> Estimate:
    """Estimate the work that is left.

    Parameters
    ----------
    left : iterable of RunSpec
        Runs without a result.
    finished : iterable of dict
        Results of others: a method that has some goes on at their median speed, the others at the
        speed of the model's forward, which leaves out the arithmetic of gradients. Results of runs
        with another number of threads do not count.
    model : Model
        The model.
    held_out, test : int
        Images of an evaluation.
    jobs : int
        Processes, with a core each; one process takes all cores.

    Returns
    -------
    Estimate
        The estimate. The last runs leave processes idle: hours are at least the longest run's.
    """
    threads = 0 if jobs == 1 else 1
    speed = forward_speed(model, threads)
    known = _speeds(result for result in finished if result["threads"] == threads)
    macs, seconds, longest = 0, 0.0, 0.0
    specs = list(left)
    for spec in specs:
        evaluation = evaluation_macs(spec, model, held_out=held_out, test=test)
        took = spec.macs / known.get(spec.method, speed) + evaluation / speed
        macs += spec.macs + evaluation
        seconds += took
        longest = max(longest, took)
    hours = max(seconds / jobs, longest) / 3600
    return Estimate(len(specs), macs, hours, jobs, speed)


def _speeds(finished: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for result in finished:
        if result["macs"] and result["train_seconds"] > 0:
            rate = result["macs"] / result["train_seconds"]
            found.setdefault(result["axes"]["method"], []).append(rate)
    return {method: float(np.median(rates)) for method, rates in found.items()}
