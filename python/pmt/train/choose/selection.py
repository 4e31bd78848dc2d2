"""Choosing what to train by trial runs, with forward passes only (section 3.3 of the paper)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt._util.checks import checked_candidates, checked_integer
from pmt._util.did_you_mean import did_you_mean
from pmt._util.progress import ProgressLine
from pmt.datasets import Dataset
from pmt.datasets.dataset import DataLike, checksum
from pmt.model import ImageScores, Model
from pmt.model.model import check_model
from pmt.protocol.intervals import PairedMargin, paired_margin
from pmt.train.costs.memory import arena_bytes, device_options
from pmt.train.options import TrainingOptions
from pmt.train.prepare.preparation import without_head
from pmt.train.zo_trainer import ZOTrainer

__all__ = ["CRITERIA", "Candidate", "Selection", "default_candidates", "select"]

CRITERIA = ("loss", "accuracy")
_MACS_A_UNIT = 10**6


@dataclass(frozen=True)
class Candidate:
    """A set of layers that was trained on trial.

    Attributes
    ----------
    name : str
        As it was given: a block, a layer, or several joined by ``+``.
    weights, biases : int
        Numbers that are trained.
    memory_bytes : int
        Arena with the trained weights, on a 32-bit target with these options.
    macs : int
        Multiply-accumulates of a training step, for each image.
    forwards, total_macs : int
        Forward passes and multiply-accumulates of the trial runs, over all seeds.
    loss, accuracy : float
        Measures on the held-out images after it (nats; 0..1), the mean over the seeds.
    margin : PairedMargin
        Margin of the criterion by which the chosen candidate is better; 0 for the chosen itself.
    gain : PairedMargin
        Margin by which it is better than no training.
    """

    name: str
    weights: int
    biases: int
    memory_bytes: int
    macs: int
    forwards: int
    total_macs: int
    loss: float
    accuracy: float
    margin: PairedMargin
    gain: PairedMargin

    @property
    def layers(self) -> str:
        """The ``layers`` of :class:`pmt.TrainingOptions`."""
        return self.name.replace("+", ",")


@dataclass(frozen=True)
class Selection:
    """Outcome of a selection.

    Attributes
    ----------
    criterion : str
        Measure that was compared.
    best : Candidate
        The one to train.
    candidates : tuple of Candidate
        In the order given.
    loss, accuracy : float
        Measures on the held-out images before any training.
    held_out : int
        Held-out images.
    seeds : int
        Trial runs of each candidate.
    """

    criterion: str
    best: Candidate
    candidates: tuple[Candidate, ...]
    loss: float
    accuracy: float
    held_out: int
    seeds: int

    @property
    def forwards(self) -> int:
        """Perturbed forwards of all trial runs."""
        return sum(candidate.forwards for candidate in self.candidates)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all trial runs."""
        return sum(candidate.total_macs for candidate in self.candidates)

    @property
    def rivals(self) -> tuple[Candidate, ...]:
        """Candidates that the held-out images cannot tell from the best (95 %)."""
        others = (c for c in self.candidates if c is not self.best)
        return tuple(c for c in others if not c.margin.significant)

    @property
    def significant(self) -> bool:
        """Whether the best is told from all others."""
        return not self.rivals

    def verdict(self, candidate: Candidate) -> str:
        """Say in a word what came of a candidate."""
        if candidate is self.best:
            return "chosen" if self.significant else "chosen, not significant"
        return "worse" if candidate.margin.significant else "cannot be told apart"


def default_candidates(model: Model) -> list[str]:
    """Return the names of a model's blocks ``B1``, ``B2``, ...

    Raises
    ------
    ValueError
        If it has none, or only one.
    """
    found = [name for name in model.blocks if name[:1] == "B" and name[1:].isdigit()]
    if not found:
        raise ValueError(
            f"the model has no blocks B1, B2, ... (it has {', '.join(model.blocks) or 'none'}); "
            "say what to choose from, for example conv1,conv2+head"
        )
    if len(found) == 1:
        raise ValueError(
            f"the model has one block, {found[0]}, and a choice needs two or more; say what to "
            "choose from, for example conv1,conv2+head"
        )
    return sorted(found, key=lambda name: int(name[1:]))


def select(
    model: Model,
    train: DataLike,
    held_out: DataLike,
    *,
    options: TrainingOptions | None = None,
    candidates: Sequence[str] | None = None,
    epochs: int = 1,
    criterion: str = "loss",
    seeds: int = 1,
    out: str | Path | None = None,
    threads: int = 0,
    progress: bool = True,
) -> Selection:
    """Train each candidate for a short time from the same state, and choose on held-out images.

    All candidates see the same batches in the same order (common random numbers), so that what is
    compared differs only in the candidate.

    Parameters
    ----------
    model : Model
        The model; its weights do not change.
    train : Dataset or tuple of two arrays
        Images of the trial runs.
    held_out : Dataset or tuple of two arrays
        Images to choose on; not those of ``train`` and not those to be reported.
    options : TrainingOptions, optional
        Options of the trial runs; ``layers`` and ``epochs`` are replaced, ``macs`` and
        the head of ``preparation`` are not used. By default the preset's.
    candidates : sequence of str, optional
        Names of blocks or layers, several of them joined by ``+``; by default
        :func:`default_candidates`.
    epochs : int
        Epochs of each trial run; the paper's is 1.
    criterion : {"loss", "accuracy"}
        Measure to compare: the mean held-out loss, or the paper's held-out accuracy.
    seeds : int
        Trial runs of each candidate, with the seeds ``options.seed``, + 1, ...
    out : str or pathlib.Path, optional
        Folder that gets a run folder for each trial run. Those that are there already are used
        or resumed.
    threads : int
        Threads; the result does not depend on it.
    progress : bool
        Show a progress line on a terminal.

    Returns
    -------
    Selection
        The best candidate, with what sets it off from the others.

    Raises
    ------
    TypeError
        If ``model`` is not a model, ``options`` is not ``TrainingOptions``, ``seeds``,
        ``epochs`` or ``threads`` is not an integer, or ``train`` or ``held_out`` is
        neither a data set nor a tuple of two arrays.
    ValueError
        If a name is unknown or given twice, a number or the criterion is out of range, or a folder
        holds another run.
    KeyboardInterrupt
        On Ctrl-C; with ``out``, the same call continues from there.
    """
    check_model(model)
    if options is not None and not isinstance(options, TrainingOptions):
        raise TypeError(f"options is {type(options).__name__}: must be pmt.TrainingOptions")
    names = list(candidates) if candidates is not None else default_candidates(model)
    plans = _plans(model, names, options or TrainingOptions(), epochs, seeds, threads)
    if criterion not in CRITERIA:
        raise ValueError(f"criterion={criterion!r} is unknown{did_you_mean(criterion, CRITERIA)}")
    train, held_out = Dataset.of(train, "train"), Dataset.of(held_out, "held_out")
    if len(held_out) < 2:
        raise ValueError("held_out has 1 image: a choice needs at least 2, better 100 or more")
    work = _Work(model, train, held_out, Path(out) if out is not None else None, plans)
    start = model.score_images(held_out, threads=threads)
    trials = work.run(progress)
    return _chosen(work, names, start, trials, criterion)


@dataclass(frozen=True)
class _Plan:
    """One trial run."""

    name: str
    trainer: ZOTrainer

    def steps(self, samples: int) -> int:
        return samples // self.trainer.options.batch * self.trainer.options.epochs


def _plans(
    model: Model,
    names: Sequence[str],
    options: TrainingOptions,
    epochs: int,
    seeds: int,
    threads: int,
) -> list[_Plan]:
    checked_candidates(names)
    if checked_integer("seeds", seeds) < 1:
        raise ValueError(f"seeds={seeds} must be 1 or more")
    made = []
    for name in names:
        layers = name.replace("+", ",")
        model.select_layers(layers, argument="candidates")
        for seed in range(options.seed, options.seed + seeds):
            changed = options.replace(
                layers=layers,
                epochs=epochs,
                macs=0,
                seed=seed,
                preparation=without_head(options.preparation),
                keep_best=False,  # the held-out images compare the candidates' last steps
            )
            made.append(_Plan(name, ZOTrainer(changed, threads=threads)))
    return made


@dataclass(frozen=True)
class _Trial:
    """Outcome of a trial run, and its work with that of its probes."""

    scores: ImageScores
    forwards: int
    macs: int


@dataclass(frozen=True)
class _Work:
    """All trial runs on one model and data."""

    model: Model
    train: Dataset
    held_out: Dataset
    out: Path | None
    plans: Sequence[_Plan]

    def run(self, progress: bool) -> list[_Trial]:
        costs = [plan.trainer.cost(self.model).macs // _MACS_A_UNIT for plan in self.plans]
        steps = [plan.steps(len(self.train)) for plan in self.plans]
        total = sum(cost * count for cost, count in zip(costs, steps, strict=True))
        line = _MeasuredLine(max(total, 1), progress)
        source = {
            "model_crc32": _core.crc32(self.model.image()),
            "data_crc32": checksum(self.train),
            "purpose": "selection",
        }
        trials = []
        try:
            for plan, cost, count in zip(self.plans, costs, steps, strict=True):
                trained = self.model.copy()
                folder = None if self.out is None else self.out / _folder_name(plan)
                result = plan.trainer.fit(
                    trained,
                    self.train,
                    out=folder,
                    source=source,
                    progress=line.of(plan.name, cost, count),
                )
                line.end(cost * count)
                scores = trained.score_images(self.held_out, threads=plan.trainer.threads)
                last = result.epochs[-1]
                trials.append(_Trial(scores, last["forwards"], last["macs"]))
        finally:
            line.clear()
        return trials


class _MeasuredLine:
    """A progress line over all trial runs, in units that take equally long."""

    def __init__(self, total: int, shown: bool) -> None:
        self.total = total
        self.shown = shown
        self.ended = 0
        self.line: ProgressLine | None = None

    def of(self, name: str, cost: int, steps: int) -> Callable[[int, dict[str, Any]], None]:
        def after_step(step: int, record: dict[str, Any]) -> None:
            done = self.ended + cost * step
            if self.line is None:  # what was done before, in a run that is resumed, took no time
                self.line = ProgressLine(self.total, done=done - cost, unit="MMAC")
            if self.shown:
                self.line.update(done, f"{name} step {step}/{steps}  loss {record['loss']:.4f}")

        return after_step

    def end(self, done: int) -> None:
        self.ended += done

    def clear(self) -> None:
        if self.line is not None:
            self.line.clear()


def _folder_name(plan: _Plan) -> str:
    safe = "".join(c if c.isalnum() or c in "._+-" else "_" for c in plan.name)
    return f"{safe}-seed{plan.trainer.options.seed}"


def _chosen(
    work: _Work,
    names: Sequence[str],
    start: ImageScores,
    trials: Sequence[_Trial],
    criterion: str,
) -> Selection:
    plans = work.plans
    seeds = len(plans) // len(names)
    lower_is_better = [_compared(trial.scores, criterion) for trial in trials]
    tables = [np.stack(lower_is_better[i : i + seeds]) for i in range(0, len(plans), seeds)]
    before = np.broadcast_to(_compared(start, criterion), tables[0].shape)
    # Where scores are equal, the first candidate given wins.
    best = int(np.argmin([table.mean() for table in tables]))
    candidates = []
    for k, name in enumerate(names):
        options = plans[k * seeds].trainer.options
        steps = plans[k * seeds].steps(len(work.train))
        own = trials[k * seeds : (k + 1) * seeds]
        spent = sum(trial.macs for trial in own)
        candidates.append(
            Candidate(
                name=name,
                **_size(work.model, options),
                macs=spent // (seeds * steps * options.batch),
                forwards=sum(trial.forwards for trial in own),
                total_macs=spent,
                loss=float(np.mean([trial.scores.losses.mean() for trial in own])),
                accuracy=float(np.mean([trial.scores.correct.mean() for trial in own])),
                margin=paired_margin(tables[best], tables[k]),
                gain=paired_margin(tables[k], before),
            )
        )
    return Selection(
        criterion=criterion,
        best=candidates[best],
        candidates=tuple(candidates),
        loss=float(start.losses.mean()),
        accuracy=float(start.correct.mean()),
        held_out=len(start.losses),
        seeds=seeds,
    )


def _compared(scores: ImageScores, criterion: str) -> npt.NDArray[np.float64]:
    return scores.losses if criterion == "loss" else np.where(scores.correct, 0.0, 1.0)


def _size(model: Model, options: TrainingOptions) -> dict[str, int]:
    chosen = model.select_layers(options.layers)
    layers = [layer for layer in model.layers if layer.index in chosen]
    on_target = device_options(options)
    return {
        "weights": sum(layer.weights for layer in layers),
        "biases": sum(layer.biases for layer in layers),
        "memory_bytes": arena_bytes(model.core, on_target, chosen, options.batch),
    }
