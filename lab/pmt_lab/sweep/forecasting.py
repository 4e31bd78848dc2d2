"""The work that is left of a sweep, and how long it takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pmt.model import Model
from pmt_lab.sweep.run_spec import RunSpec

__all__ = ["Estimate", "estimate"]

_SECONDS_OF_A_TIMING = 0.3


@dataclass(frozen=True)
class Estimate:
    """Work that is left: ``runs``, its ``macs``, and ``hours`` on this machine with ``jobs``."""

    runs: int
    macs: int
    hours: float
    jobs: int
    macs_per_second: float


def estimate(
    left: Iterable[RunSpec],
    finished: Iterable[Mapping[str, Any]],
    model: Model,
    *,
    held_out: int,
    test: int,
    jobs: int,
    elsewhere: Iterable[Sequence[Mapping[str, Any]]] = (),
) -> Estimate:
    """Estimate the work that is left.

    Parameters
    ----------
    left : iterable of RunSpec
        Runs without a result.
    finished : iterable of dict
        Results of others: a method that has some is expected to keep their median speed. Results of
        runs with another number of threads count where a method has no others.
    model : Model
        The model.
    held_out, test : int
        Images of an evaluation.
    jobs : int
        Processes, with a core each; one process takes all cores.
    elsewhere : iterable of sequences of dict
        Results or records of other sweeps or machines, the most alike first, for methods without a
        result. Where they have none either, methods of the same trainer count, and last the speed
        of the model's forward, which leaves out the arithmetic of gradients.

    Returns
    -------
    Estimate
        The estimate. The last runs leave processes idle: hours are at least the longest run's.
    """
    threads = 0 if jobs == 1 else 1
    speed = _forward_speed(model, threads)
    speeds = _Speeds(finished, elsewhere, threads)
    macs, seconds, longest = 0, 0.0, 0.0
    specs = list(left)
    for spec in specs:
        evaluation = _evaluation_macs(spec, model, held_out=held_out, test=test)
        took = spec.macs / (speeds.of(spec) or speed) + evaluation / speed
        macs += spec.macs + evaluation
        seconds += took
        longest = max(longest, took)
    hours = max(seconds / jobs, longest) / 3600
    return Estimate(len(specs), macs, hours, jobs, speed)


def _forward_speed(model: Model, threads: int) -> float:
    """Return the multiply-accumulates per second of the model's forward."""
    generator = np.random.Generator(np.random.PCG64(0))
    images = generator.integers(-128, 128, (8, *model.input_shape), dtype=np.int8)
    model.logits(images, threads=threads)
    count, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < _SECONDS_OF_A_TIMING:
        model.logits(images, threads=threads)
        count += len(images)
    return model.macs * count / elapsed


def _evaluation_macs(spec: RunSpec, model: Model, *, held_out: int, test: int) -> int:
    """Return the multiply-accumulates of a run's evaluations.

    Test images count twice, corrupted and clean, and not in a trial. That the untrained model is
    measured once for many runs is left out.
    """
    tested = 0 if spec.trial else 2 * test
    return model.macs * (tested + (spec.evaluations + 1) * held_out)


class _Speeds:
    """Multiply-accumulates per second that runs were trained with, the most alike first."""

    def __init__(
        self,
        finished: Iterable[Mapping[str, Any]],
        elsewhere: Iterable[Sequence[Mapping[str, Any]]],
        threads: int,
    ) -> None:
        by_likeness: list[Sequence[Mapping[str, Any]]] = []
        for part in (list(finished), *elsewhere):
            by_likeness += ([one for one in part if one.get("threads") == threads], part)
        self._methods = [_speeds(results, _method) for results in by_likeness]
        self._trainers = [_speeds(results, _trainer) for results in by_likeness]

    def of(self, spec: RunSpec) -> float | None:
        """Return the median speed of a run's method, or else of its trainer's methods."""
        by_method = (speeds.get(spec.method) for speeds in self._methods)
        by_trainer = (speeds.get(spec.trainer) for speeds in self._trainers)
        return next((speed for speed in (*by_method, *by_trainer) if speed is not None), None)


def _method(result: Mapping[str, Any]) -> str:
    return str(result["axes"]["method"])


def _trainer(result: Mapping[str, Any]) -> str:
    return str(result.get("trainer"))


def _speeds(
    results: Iterable[Mapping[str, Any]], name: Callable[[Mapping[str, Any]], str]
) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for result in results:
        if result.get("macs") and result["train_seconds"] > 0:
            rate = result["macs"] / result["train_seconds"]
            found.setdefault(name(result), []).append(rate)
    return {one: float(np.median(rates)) for one, rates in found.items()}
