"""Choosing trained layers by trial runs, with forward passes only (section 3.3 of the paper)."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from pmt import _core
from pmt._util.arrays import DoubleArray
from pmt._util.checks import (
    check_type,
    checked_candidates,
    checked_flag,
    checked_names,
    checked_path,
    checked_range,
    checked_word,
)
from pmt._util.progress import ProgressLine
from pmt._util.text import counted, did_you_mean
from pmt.datasets import Dataset
from pmt.datasets.dataset import DataLike, checksum
from pmt.errors import OptionError
from pmt.model import ImageScores, Model
from pmt.model.model import check_model
from pmt.protocol import DataSource, Split, SplitChoice
from pmt.protocol.comparison import PairedMargin, paired_margin
from pmt.train.costs.memory import arena_bytes
from pmt.train.options import TrainingOptions, check_options
from pmt.train.prepare.preparation import without_head
from pmt.train.training_data import check_choosing
from pmt.train.zo_trainer import ZOTrainer

Criterion = Literal["loss", "accuracy"]
CRITERIA: tuple[Criterion, ...] = get_args(Criterion)


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


@dataclass(frozen=True, repr=False)
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
    options : TrainingOptions
        Options of the trial runs, but for their layers and seeds.
    """

    criterion: Criterion
    best: Candidate
    candidates: tuple[Candidate, ...]
    loss: float
    accuracy: float
    held_out: int
    seeds: int
    options: TrainingOptions

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
        """Return the verdict on a candidate, in a word."""
        if candidate is self.best:
            return "chosen" if self.significant else "chosen, not significant"
        return "worse" if candidate.margin.significant else "cannot be told apart"

    def __repr__(self) -> str:
        tried = counted(len(self.candidates), "candidate")
        verdict = self.verdict(self.best)
        return f"<Selection of {tried} by {self.criterion}: {self.best.name} {verdict}>"

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        rows = []
        for candidate in self.candidates:
            row = asdict(candidate)
            row["margin"]["significant"] = candidate.margin.significant
            row["gain"]["significant"] = candidate.gain.significant
            rows.append({**row, "layers": candidate.layers, "verdict": self.verdict(candidate)})
        return {
            "best": self.best.name,
            "criterion": self.criterion,
            "significant": self.significant,
            "rivals": [candidate.name for candidate in self.rivals],
            "before": {"loss": self.loss, "accuracy": self.accuracy},
            "held_out": self.held_out,
            "seeds": self.seeds,
            "candidates": rows,
            "forwards": self.forwards,
            "macs": self.macs,
            "options": {k: v for k, v in asdict(self.options).items() if k != "layers"},
        }


MOST_SEEDS = 1000
_MACS_A_UNIT = 10**6


def default_candidates(model: Model) -> list[str]:
    """Return the names of a model's blocks ``B1``, ``B2``, ...

    Raises
    ------
    ValueError
        If it has none, or only one.
    """
    check_model(model)
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
    criterion: Criterion = "loss",
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
        :func:`pmt.train.choose.default_candidates`.
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
        If a name is unknown or given twice, a number or the criterion is out of range, more than a
        tenth of ``held_out`` is among ``train``, or a folder holds another run.
    KeyboardInterrupt
        On Ctrl-C; with ``out``, the same call continues from there.
    """
    check_model(model)
    if options is not None:
        check_options(options)
    options = (options or TrainingOptions()).replace(epochs=epochs)
    names = default_candidates(model)
    if candidates is not None:
        names = list(checked_names("candidates", candidates))
    trainers = _trainers(model, names, options, seeds, threads)
    checked_word("criterion", criterion, CRITERIA)
    progress = checked_flag("progress", progress)
    train, held_out = Dataset.of(train, "train"), Dataset.of(held_out, "held_out")
    batch = trainers[0][1].fitted_to(train).options.batch
    if batch != options.batch:
        options = options.replace(batch=batch)
        trainers = _trainers(model, names, options, seeds, threads)
    if len(held_out) < 2:
        raise ValueError("held_out has 1 image: a choice needs at least 2, better 100 or more")
    folder = None if out is None else checked_path("out", out)
    check_choosing(train, held_out)
    start = model.score_images(held_out, threads=threads)
    trials = _run_trials(model, train, held_out, trainers, folder, progress)
    return _chosen(model, train, names, start, trials, criterion, options)


def select_block(
    model: Model,
    data: DataSource,
    *,
    split: SplitChoice | None = None,
    options: TrainingOptions | None = None,
    candidates: Sequence[str] | None = None,
    criterion: Criterion = "loss",
    seeds: int = 1,
    out: str | Path | None = None,
    threads: int = 0,
    opened: Callable[[Split], None] | None = None,
) -> Selection:
    """Train each candidate for a short time and choose on held-out images of a data source.

    Parameters
    ----------
    model : Model
        The model; its weights do not change.
    data : DataSource
        The images.
    split : SplitChoice, optional
        Choice of the images that train and those that choose.
    options : TrainingOptions, optional
        Options of each trial run; ``layers`` are those of the candidate; ``macs``
        and ``keep_best`` are not used. By default those of one epoch.
    candidates, criterion, seeds, out, threads
        As in :func:`pmt.select`.
    opened : callable, optional
        Called with the images before any training.

    Returns
    -------
    Selection
        The best candidate, with what sets it off from the others.

    Raises
    ------
    ValueError, FileNotFoundError
        As :meth:`pmt.protocol.SplitChoice.of` and :func:`pmt.select`; or if no image
        is held out.
    KeyboardInterrupt
        On Ctrl-C; with ``out``, the same call continues from there.
    """
    check_model(model)
    if criterion not in CRITERIA:
        near = did_you_mean(criterion, CRITERIA)
        raise OptionError("criterion", f" {criterion!r} is unknown{near}")
    if split is not None:
        check_type("split", split, SplitChoice, "a pmt.protocol.SplitChoice, or None")
    names = default_candidates(model) if candidates is None else candidates
    options = options or TrainingOptions(epochs=1)
    images = (split or SplitChoice()).of(data, model)
    if opened is not None:
        opened(images)
    return select(
        model,
        images.train,
        images.choosing(),
        options=options,
        candidates=names,
        epochs=options.epochs,
        criterion=criterion,
        seeds=seeds,
        out=out,
        threads=threads,
    )


@dataclass(frozen=True)
class _Trial:
    """A trial run, the scores after it, and its work."""

    trainer: ZOTrainer
    scores: ImageScores
    forwards: int
    macs: int


def _trainers(
    model: Model, names: Sequence[str], options: TrainingOptions, seeds: int, threads: int
) -> list[tuple[str, ZOTrainer]]:
    """Return the trainer of each trial run, with its candidate's name."""
    checked_candidates(names)
    seeds = checked_range("seeds", seeds, 1, MOST_SEEDS)
    made = []
    for name in names:
        layers = name.replace("+", ",")
        model.select_layers(layers, argument="candidates")
        for seed in range(options.seed, options.seed + seeds):
            changed = options.replace(
                layers=layers,
                macs=0,
                seed=seed,
                preparation=without_head(options.preparation),
                keep_best=False,  # the held-out images compare the candidates' last steps
            )
            made.append((name, ZOTrainer(changed, threads=threads)))
    return made


def _steps(options: TrainingOptions, train: Dataset) -> int:
    return len(train) // options.batch * options.epochs


def _run_trials(
    model: Model,
    train: Dataset,
    held_out: Dataset,
    trainers: Sequence[tuple[str, ZOTrainer]],
    out: Path | None,
    progress: bool,
) -> list[_Trial]:
    costs = [trainer.cost(model).macs // _MACS_A_UNIT for _, trainer in trainers]
    steps = [_steps(trainer.options, train) for _, trainer in trainers]
    total = sum(cost * count for cost, count in zip(costs, steps, strict=True))
    line = _MeasuredLine(max(total, 1), progress)
    source = {
        "model_crc32": _core.crc32(model.image()),
        "data_crc32": checksum(train),
        "purpose": "selection",
    }
    trials = []
    try:
        for (name, trainer), cost, count in zip(trainers, costs, steps, strict=True):
            trained = model.copy()
            folder = None if out is None else out / _folder_name(name, trainer.options.seed)
            result = trainer.fit(
                trained, train, out=folder, source=source, progress=line.of(name, cost, count)
            )
            line.ended += cost * count
            scores = trained.score_images(held_out, threads=trainer.threads)
            last = result.epochs[-1]
            trials.append(_Trial(trainer, scores, last["forwards"], last["macs"]))
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

    def clear(self) -> None:
        if self.line is not None:
            self.line.clear()


def _folder_name(name: str, seed: int) -> str:
    safe = "".join(c if c.isalnum() or c in "._+-" else "_" for c in name)
    return f"{safe}-seed{seed}"


def _chosen(
    model: Model,
    train: Dataset,
    names: Sequence[str],
    start: ImageScores,
    trials: Sequence[_Trial],
    criterion: Criterion,
    options: TrainingOptions,
) -> Selection:
    seeds = len(trials) // len(names)
    runs = [trials[first : first + seeds] for first in range(0, len(trials), seeds)]
    # Lower is better.
    tables = [np.stack([_compared(trial.scores, criterion) for trial in own]) for own in runs]
    before = np.broadcast_to(_compared(start, criterion), tables[0].shape)
    # Where scores are equal, the first candidate given wins.
    best = int(np.argmin([table.mean() for table in tables]))
    candidates = []
    for name, own, table in zip(names, runs, tables, strict=True):
        own_options = own[0].trainer.options
        spent = sum(trial.macs for trial in own)
        candidates.append(
            Candidate(
                name=name,
                **_size(model, own_options),
                macs=spent // (seeds * _steps(own_options, train) * options.batch),
                forwards=sum(trial.forwards for trial in own),
                total_macs=spent,
                loss=float(np.mean([trial.scores.losses.mean() for trial in own])),
                accuracy=float(np.mean([trial.scores.correct.mean() for trial in own])),
                margin=paired_margin(tables[best], table),
                gain=paired_margin(table, before),
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
        options=options,
    )


def _compared(scores: ImageScores, criterion: str) -> DoubleArray:
    return scores.losses if criterion == "loss" else np.where(scores.correct, 0.0, 1.0)


def _size(model: Model, options: TrainingOptions) -> dict[str, int]:
    chosen = model.select_layers(options.layers)
    layers = [layer for layer in model.layers if layer.index in chosen]
    on_target = options.to_core()
    return {
        "weights": sum(layer.weights for layer in layers),
        "biases": sum(layer.biases for layer in layers),
        "memory_bytes": arena_bytes(model.core, on_target, chosen, options.batch),
    }
