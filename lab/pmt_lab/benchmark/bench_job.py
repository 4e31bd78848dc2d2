"""A benchmark of a model: forwards, layers, training steps, and other engines, in one run."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from pmt import _core
from pmt.model import Model
from pmt.train.options import TrainingOptions
from pmt_lab.benchmark.against import (
    Agreement,
    EngineTime,
    StepComparison,
    compare_forwards,
    compare_steps,
    outputs_agree,
)
from pmt_lab.benchmark.forward import (
    ForwardTime,
    OpTimes,
    StepTime,
    profile,
    time_forwards,
    time_steps,
)
from pmt_lab.benchmark.rivals import open_rivals
from pmt_lab.benchmark.timing import Machine


@dataclass(frozen=True)
class BenchJob:
    """A benchmark, see :func:`run_benchmark`.

    Parameters
    ----------
    model : Model
        The model.
    path : str
        File or bundled name that it was read from; a ``.tflite`` is what LiteRT then runs.
    images : tuple of int
        Numbers of images of a forward.
    threads : tuple of int
        Numbers of threads, 0 for all; layers are timed on one.
    repeat : int
        Measurements of each figure, whose median counts.
    rules : tuple of str
        Estimators whose training steps are timed: "weight", "node", "pooled", "by_dimension".
    options : TrainingOptions
        Options of the training steps.
    against : tuple of str
        Engines to compare with, of :data:`pmt_lab.benchmark.rivals.RIVALS`.
    """

    model: Model
    path: str = ""
    images: tuple[int, ...] = (1, 100)
    threads: tuple[int, ...] = (1, 0)
    repeat: int = 7
    rules: tuple[str, ...] = ("weight", "node")
    options: TrainingOptions = field(default_factory=lambda: TrainingOptions(batch=20, queries=10))
    against: tuple[str, ...] = ()


@dataclass
class BenchResult:
    """Measurements so far; a list is empty where nothing of its kind was asked for.

    Attributes
    ----------
    job : BenchJob
        Job that is measured.
    machine : Machine
        Machine that it runs on.
    forwards : list of ForwardTime
        Whole forwards.
    ops : list of OpTimes
        The forward, op by op.
    steps : list of StepTime
        Training steps.
    engines : list of EngineTime
        Forwards of other engines.
    agreement : list of Agreement
        Comparisons of their outputs.
    engine_steps : list of StepComparison
        Training steps with another engine's forwards.
    """

    job: BenchJob
    machine: Machine
    forwards: list[ForwardTime] = field(default_factory=list)
    ops: list[OpTimes] = field(default_factory=list)
    steps: list[StepTime] = field(default_factory=list)
    engines: list[EngineTime] = field(default_factory=list)
    agreement: list[Agreement] = field(default_factory=list)
    engine_steps: list[StepComparison] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        options = self.job.options
        chosen = {"layers": options.layers, "batch": options.batch, "queries": options.queries}
        return {
            "model": self.job.path,
            "macs": self.job.model.macs,
            "repeat": self.job.repeat,
            "machine": asdict(self.machine),
            "forward": [asdict(time) for time in self.forwards],
            "layers": [
                asdict(op) | {"gmacs": {count: op.gmacs(count) for count in op.microseconds}}
                for op in self.ops
            ],
            "steps": [chosen | asdict(time) for time in self.steps],
            "engines": [asdict(time) for time in self.engines],
            "agreement": [asdict(one) for one in self.agreement],
            "engine_steps": [asdict(time) for time in self.engine_steps],
        }


def run_benchmark(
    job: BenchJob, *, measured: Callable[[str, BenchResult], None] | None = None
) -> BenchResult:
    """Time a model on random images: medians of measurements taken in turns.

    Parameters
    ----------
    job : BenchJob
        Measurements to make.
    measured : callable, optional
        Called as ``measured(name, result)`` as soon as the attribute ``name`` of the result, the
        machine first, is known.

    Returns
    -------
    BenchResult
        The figures.

    Raises
    ------
    ValueError
        If a layer, an estimator or an engine is unknown.
    ImportError
        If the packages of an engine are missing.
    """
    tell = measured or (lambda name, result: None)
    model = job.model
    model.select_layers(job.options.layers)
    rivals = [rival for name in job.against for rival in open_rivals(name, model, job.path)]
    threads = tuple(dict.fromkeys(_core.threads(count) for count in job.threads))
    machine = Machine.measured(threads)
    result = BenchResult(job, machine)
    tell("machine", result)
    result.forwards = time_forwards(model, machine, images=job.images, repeat=job.repeat)
    tell("forwards", result)
    result.ops = profile(model, images=job.images, repeat=job.repeat)
    tell("ops", result)
    steps: dict[str, Any] = {"rules": job.rules, "repeat": job.repeat}
    if job.rules:
        result.steps = time_steps(model, machine, job.options, **steps)
        tell("steps", result)
    if rivals:
        result.engines = compare_forwards(
            model, machine, rivals, images=job.images, repeat=job.repeat
        )
        tell("engines", result)
        result.agreement = outputs_agree(model, rivals)
        tell("agreement", result)
    if "torch" in job.against and job.rules:
        result.engine_steps = compare_steps(model, machine, job.options, **steps)
        tell("engine_steps", result)
    return result
