"""A benchmark of a model: forwards, layers, training steps, and other engines, in one run."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from pmt import _core
from pmt.model import Model
from pmt.train.options import TrainingOptions
from pmt_lab.benchmark.against import compare_forwards, outputs_agree
from pmt_lab.benchmark.forward import profile, time_forwards, time_steps
from pmt_lab.benchmark.rivals import open_rivals
from pmt_lab.benchmark.timing import Machine


def run_benchmark(
    model: Model,
    path: str = "",
    *,
    images: Sequence[int] = (1, 100),
    threads: Sequence[int] = (1, 0),
    repeat: int = 7,
    rules: Sequence[str] = ("weight", "node"),
    options: TrainingOptions | None = None,
    against: Sequence[str] = (),
    measured: Callable[[str, dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Time a model on random images: medians of measurements taken in turns.

    Parameters
    ----------
    model : Model
        The model.
    path : str
        File or bundled name that it was read from; a ``.tflite`` is what LiteRT then runs.
    images : sequence of int
        Numbers of images of a forward.
    threads : sequence of int
        Numbers of threads, 0 for all; layers are timed on one.
    repeat : int
        Measurements of each figure, whose median counts.
    rules : sequence of str
        Estimators whose training steps are timed: "weight", "node", "pooled", "by_dimension".
    options : TrainingOptions, optional
        Options of the training steps; by default a batch of 20 and 10 queries.
    against : sequence of str
        Engines to compare with, of :data:`pmt_lab.benchmark.rivals.RIVALS`.
    measured : callable, optional
        Called as ``measured(key, figures)`` as soon as the figures of a key, the machine first, are
        known.

    Returns
    -------
    dict
        The figures as JSON values: ``model``, ``macs``, ``repeat``, ``machine``, and lists of
        records, ``forward``, ``layers``, ``steps``, ``engines`` and ``agreement``, which are empty
        where nothing of their kind was asked for.
    """
    tell = measured or (lambda key, figures: None)
    options = options or TrainingOptions(batch=20, queries=10)
    model.select_layers(options.layers)
    rivals = [rival for name in against for rival in open_rivals(name, model, path)]
    machine = Machine.measured(tuple(dict.fromkeys(_core.threads(count) for count in threads)))
    figures: dict[str, Any] = {"model": path, "macs": model.macs, "repeat": repeat}
    figures["machine"] = asdict(machine)
    tell("machine", figures)

    def step(key: str, measure: Callable[[], list[dict[str, Any]]], *, wanted: object) -> None:
        figures[key] = measure() if wanted else []
        if wanted:
            tell(key, figures)

    forwards: dict[str, Any] = {"images": images, "repeat": repeat}
    steps: dict[str, Any] = {"rules": rules, "repeat": repeat}
    step("forward", lambda: time_forwards(model, machine, **forwards), wanted=True)
    step("layers", lambda: profile(model, **forwards), wanted=True)
    step("steps", lambda: time_steps(model, machine, options, **steps), wanted=rules)
    step("engines", lambda: compare_forwards(model, machine, rivals, **forwards), wanted=rivals)
    step("agreement", lambda: outputs_agree(model, rivals), wanted=rivals)
    return figures
